// Requests products at a constant rate, also while the service is slow (an open loop). Times count from when a request
// was due, so a pause of the service delays every request that was due in it (no coordinated omission).
//
//   k6 run -e RATE=500 -e EDGE=64 -e FORM=raw -e DURATION=30s -e URL=http://127.0.0.1:8080 bench/load/k6.js
//
// FORM is raw, json, made (the server generates the operands) or stored (the stored matrix `load` times itself). With
// made and stored the reply has no matrix. If dropped_iterations is not 0, the times are too low, because k6 had too few
// virtual users (VUS, default 200) to send every request.
import http from 'k6/http';
import { check } from 'k6';

const { URL = 'http://127.0.0.1:8080', EDGE = 64, FORM = 'raw', RATE = 100, DURATION = '10s', VUS = 200 } = __ENV;
const edge = Number(EDGE);

export const options = {
  discardResponseBodies: true,
  scenarios: {
    products: {
      executor: 'constant-arrival-rate',
      rate: Number(RATE),
      timeUnit: '1s',
      duration: DURATION,
      preAllocatedVUs: Number(VUS),
    },
  },
  summaryTrendStats: ['min', 'med', 'p(95)', 'p(99)', 'p(99.9)', 'max'],
};

const element = () => 2 * Math.random() - 1;
const matrix = () => Array.from({ length: edge }, () => Array.from({ length: edge }, element));

const json = FORM === 'json';
const had = { made: 'a_from=uniform(1)&b_from=uniform(2)&reply=none', stored: 'a_from=load&b_from=load&reply=none' }[FORM];
const query = (FORM === 'stored' ? [] : [`m=${edge}&k=${edge}&n=${edge}`]).concat(had ?? []).join('&');
const target = json ? '/v1/matmul' : `/v1/matmul?${query}`;
const body = json
  ? JSON.stringify({ a: matrix(), b: matrix() })
  : had ? null : Float32Array.from({ length: 2 * edge * edge }, element).buffer; // A, then B
const headers = { 'Content-Type': json ? 'application/json' : 'application/octet-stream' };

export default function () {
  const reply = http.post(URL + target, body, { headers });
  check(reply, { 'status is 200': (r) => r.status === 200 });
}
