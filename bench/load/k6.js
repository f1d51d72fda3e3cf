// Products at a constant rate, whatever the service does: an open loop, so that waiting is measured from when a
// request was due and a stall costs every request that it held up (no coordinated omission).
//
//   k6 run -e RATE=500 -e EDGE=64 -e FORM=raw -e DURATION=30s -e URL=http://127.0.0.1:8080 bench/load/k6.js
//
// FORM is raw or json. Look at dropped_iterations: where it is not 0, k6 had no free user (VUS, 200) to ask
// with, and the latencies tell too little.
import http from 'k6/http';
import { check } from 'k6';

const url = __ENV.URL || 'http://127.0.0.1:8080';
const edge = Number(__ENV.EDGE || 64);
const form = __ENV.FORM || 'raw';
const users = Number(__ENV.VUS || 200);

export const options = {
  discardResponseBodies: true,
  scenarios: {
    products: {
      executor: 'constant-arrival-rate',
      rate: Number(__ENV.RATE || 100),
      timeUnit: '1s',
      duration: __ENV.DURATION || '10s',
      preAllocatedVUs: users,
      maxVUs: users,
    },
  },
  summaryTrendStats: ['min', 'med', 'p(95)', 'p(99)', 'p(99.9)', 'max'],
};

function elements() {
  return Float32Array.from({ length: edge * edge }, () => 2 * Math.random() - 1);
}

function rows(values) {
  const all = [];
  for (let row = 0; row < edge; row++) {
    all.push(Array.from(values.subarray(row * edge, (row + 1) * edge)));
  }
  return all;
}

// Both matrices, one behind the other.
function rawBody() {
  const both = new Float32Array(2 * edge * edge);
  both.set(elements(), 0);
  both.set(elements(), edge * edge);
  return both.buffer;
}

const requests = {
  raw: () => ({
    path: `/v1/matmul?m=${edge}&k=${edge}&n=${edge}`,
    body: rawBody(),
    parameters: { headers: { 'Content-Type': 'application/octet-stream' } },
  }),
  json: () => ({
    path: '/v1/matmul',
    body: JSON.stringify({ a: rows(elements()), b: rows(elements()) }),
    parameters: { headers: { 'Content-Type': 'application/json' } },
  }),
};

const request = requests[form]();

export default function () {
  const reply = http.post(url + request.path, request.body, request.parameters);
  check(reply, { 'status is 200': (r) => r.status === 200 });
}
