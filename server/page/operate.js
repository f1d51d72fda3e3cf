// The view Operate: shows the server's state every two seconds while the view is open, the tab is visible and the user
// has not paused it. Rates are differences of counters between two readings of /metrics.
import { $, byteText, call, callJson, chart, colour, make, number, problemBox, remember, table } from './base.js';

const SILENT_MS = 5000; // a server that takes longer counts as silent
const own = ['/metrics', '/readyz', '/v1/devices'];
// The members of a point with their titles, and the members that each chart draws.
const titles = { rate: 'requests/s', p50: 'p50, ms', p99: 'p99, ms', queue: 'products waiting' };
const charts = { rate: ['rate'], latency: ['p50', 'p99'], queue: ['queue'] };
let section, timer, polling, paused, withOwn;
let refused; // the key that the server refused; null if the tab had none
let readings = []; // readings of the last minute, and the reading before
let points = []; // points of the charts, for five minutes

// Parses Prometheus' text: the time, the series with their labels as members, and each value by its id.
function read(text) {
  const series = [], values = {};
  for (const [, id, name, labels = '', value] of text.matchAll(/^((\w+)(?:\{(.*)\})?) (\S+)$/gm)) {
    const one = { id, name, value: values[id] = Number(value) };
    for (const [, label, of] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) one[label] = of.replace(/\\(.)/g, '$1');
    series.push(one);
  }
  return { now: performance.now(), series, values, start: values.process_start_time_seconds };
}

// The series of a metric in the latest reading that have these labels. `grown` is the increase since the reading
// `before`.
const select = (name, labels = {}, before = readings[0]) => readings.at(-1).series
  .filter((one) => one.name === 'matmuld_' + name && Object.keys(labels).every((label) => one[label] === labels[label])
    && (withOwn || !own.includes(one.route)))
  .map((one) => ({ ...one, grown: one.value - (before.values[one.id] ?? 0) }));
const sum = (series, member = 'value') => series.reduce((total, one) => total + one[member], 0);
const total = (name, labels) => sum(select(name, labels));
const rate = (series, before = readings[0]) =>
  (before === readings.at(-1) ? null : sum(series, 'grown') / (readings.at(-1).now - before.now) * 1000);

// A quantile in ms from the growth of the buckets, as by Prometheus' histogram_quantile. In the first and the last
// bucket only a bound is known.
function quantile(q, buckets) {
  const counts = new Map(); // by bound; the bounds rise in the text
  for (const { le, grown } of buckets) counts.set(le, (counts.get(le) ?? 0) + grown);
  const steps = [...counts].map(([le, count]) => [Number(le.replace('+Inf', 'Infinity')) * 1000, count]);
  const rank = q * steps.at(-1)?.[1];
  if (!rank) return { text: '–' };
  const index = steps.findIndex(([, count]) => count >= rank);
  const [bound, count] = steps[index], [lower, below] = steps[index - 1] ?? [0, 0];
  if (bound === Infinity) return { text: '> ' + number(lower), ms: lower };
  const ms = lower + (bound - lower) * (rank - below) / (count - below);
  return { text: index ? number(ms) : '≤ ' + number(bound), ms };
}

// Shows a table in place of an older one, whose box keeps its focus and scroll position. "#" marks a column of numbers.
function place(name, caption, columns, rows) {
  const heads = columns.map((title) => ({ title: title.replace('#', ''), number: title[0] === '#' }));
  const fresh = table(caption, heads, rows), host = $('.' + name, section);
  if (!host.firstChild) return host.append(fresh);
  for (const part of ['caption', 'tbody']) $(part, host).replaceWith($(part, fresh));
}

const whole = (value) => number(value, 15);
const used = (label, bytes, limit) => make('span', {}, `${byteText(bytes)} of ${byteText(limit)}`,
  make('meter', { 'aria-label': label + ' used', max: limit, value: bytes }));

function show() {
  const { now, start, devices } = readings.at(-1), seconds = (now - readings[0].now) / 1000;
  const over = seconds ? `over the last ${number(seconds)} s` : 'from the next reading on';
  const share = (name) => used(name, total(name) - total(name, { state: 'free' }), total(name));
  const facts = {
    Version: select('build_info')[0].version,
    'Up since': new Date(start * 1000).toLocaleString(),
    'Requests in flight': whole(total('requests_in_flight')),
    'Products waiting': `${whole(total('queue_jobs'))} of ${whole(total('queue_jobs_max'))}`,
    'Memory budget': share('staging_bytes'),
    [`Stored matrices: ${whole(total('store_matrices'))}`]: share('store_bytes'),
  };
  $('.facts', section).replaceChildren(...Object.entries(facts).map(([name, fact]) =>
    make('div', {}, make('dt', {}, name), make('dd', {}, fact))));

  place('devices', `Kernels/s and kernel time are of all devices of a backend, ${over}`,
    ['Device', 'Name', 'State', 'Memory used', '#Errors', '#Kernels/s', '#Kernel time'],
    devices.map(({ backend, index, name, state, memory_bytes: limit, memory_free_bytes: free }) => {
      const device = `${backend}:${index}`, kernels = (what) => rate(select('kernel_duration_seconds_' + what, { backend }));
      const share = kernels('sum');
      return [device, name, state, free == null ? '–' : used(device, limit - free, limit),
        whole(total('device_errors_total', { device })), number(kernels('count')),
        share === null ? '–' : number(share * 100) + '%'];
    }));

  const some = (name) => select(name).filter((one) => one.value);
  const paths = new Set(some('http_requests_total').map((one) => one.route));
  place('requests', `Requests since the start; rates and latency ${over}`,
    ['Path', '#Requests', '#2xx/s', '#3xx/s', '#4xx/s', '#5xx/s', '#p50, ms', '#p90, ms', '#p99, ms'],
    ['all', ...paths].map((route) => {
      const labels = route === 'all' ? {} : { route }, of = select('http_requests_total', labels);
      return [route, whole(sum(of)),
        ...['2', '3', '4', '5'].map((digit) => number(rate(of.filter((one) => one.code[0] === digit)))),
        ...[.5, .9, .99].map((q) => quantile(q, select('request_duration_seconds_bucket', labels)).text)];
    }));
  const codes = some('rejected_total').map((one) => [one.reason, [one]]);
  place('rejected', `Error responses since the start; rate ${over}`, ['Code', '#Responses', '#Responses/s'],
    [['all', select('rejected_total')], ...codes].map(([code, of]) => [code, whole(sum(of)), number(rate(of))]));
}

function draw(before) {
  const { now } = readings.at(-1), buckets = select('request_duration_seconds_bucket');
  if (now - points.at(-1)?.now > 10000) points.push({ now: now - 1 }); // breaks the lines, because nothing is known of that time
  points.push({ now, time: new Date().toLocaleTimeString(), queue: total('queue_jobs'),
    rate: rate(select('http_requests_total', {}, before), before),
    p50: quantile(.5, buckets).ms, p99: quantile(.99, buckets).ms });
  points = points.filter((point) => point.now > now - 300000);

  place('points', 'The latest readings, with the latency of the minute before',
    ['Time', ...Object.values(titles).map((title) => '#' + title)], points.slice(-20).reverse()
      .map((point) => [point.time, ...Object.keys(titles).map((member) => number(point[member]))]));
  for (const [name, members] of Object.entries(charts)) {
    const data = (member, index) => ({ label: titles[member], borderColor: colour('series-' + (index + 1)), pointRadius: 1,
      data: points.map((point) => ({ x: (point.now - now) / 60000, y: point[member] ?? null })) });
    const x = { type: 'linear', min: -5, max: 0, ticks: { callback: (minutes) => minutes + ' min' } };
    const options = { scales: { x, y: { beginAtZero: true } } };
    chart($('.' + name, section), members.map((member) => titles[member]).join(' and ') + ' over five minutes',
      () => ({ type: 'line', data: { datasets: members.map(data) }, options }), true);
  }
}

// Leaves unchanged content alone, because a screen reader would read it again.
function put(host, node) {
  if (host.textContent !== node.textContent) host.replaceChildren(node);
}

// Takes a reading, unless the tab is hidden, the user has paused, or the server has refused the key. Reads /metrics
// last, so no request of this page counts as under way.
async function poll(quiet = true) {
  const key = sessionStorage.getItem('matmuld-key'), hint = $('.hint', section);
  if (polling) return;
  polling = true;
  if (!document.hidden && !(quiet && (paused || refused === key))) try {
    // A user who enters a key may take longer.
    const options = () => ({ quiet, signal: quiet ? AbortSignal.timeout(SILENT_MS) : null });
    const ready = await call('readyz', options()).then(() => 'Ready', (error) => 'Not ready: ' + error.message);
    put($('[role=status]', section), new Text(paused ? 'Paused' : ready));
    const { devices } = await callJson('v1/devices', undefined, options());
    const reading = { devices, ...read(await (await call('metrics', options())).text()) };
    if (readings.at(-1)?.start !== reading.start) readings = []; // the server was restarted: its counters begin at 0
    const before = readings.at(-1);
    readings.push(reading);
    while (readings[1]?.now <= reading.now - 60000) readings.shift();
    show();
    draw(before);
    hint.replaceChildren();
    refused = undefined;
  } catch (error) {
    const denied = error.status === 401;
    if (denied) refused = sessionStorage.getItem('matmuld-key');
    put(hint, denied ? make('p', {}, 'The figures need a valid API key. ',
      make('button', { type: 'button', onclick: () => poll(false) }, 'Enter a key')) : problemBox(error));
  }
  polling = false;
  clearTimeout(timer);
  if (!section.hidden) timer = setTimeout(poll, 2000);
}

export function open(shown, parameters) {
  section = shown;
  const button = $('button', section), box = $('input', section);
  button.onclick = () => {
    paused = !paused;
    button.textContent = paused ? 'Resume' : 'Pause';
    if (paused) put($('[role=status]', section), new Text('Paused'));
    poll();
  };
  box.onchange = () => {
    remember('operate', { own: box.checked ? 1 : '' });
    open(section, new URLSearchParams(location.hash.split('?')[1]));
  };
  document.onvisibilitychange = () => section.hidden || poll();
  if (withOwn !== parameters.has('own')) points = []; // older points counted other requests
  box.checked = withOwn = parameters.has('own');
  if (readings.length) show();
  poll();
}

export function close() {
  clearTimeout(timer);
}
