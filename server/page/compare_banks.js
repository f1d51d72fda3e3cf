// Where do banks conflict? A drawing of 32 lanes to move, with what the server predicts for them, and all strides.
import { $, make } from './base.js';
import { asker, benchmark, figures, options, plot } from './compare_part.js';

// The word of each lane, as the server has them (gpu/lab/access.h).
const PATTERNS = {
  linear: (lane) => lane,
  permuted: (lane) => (lane & 16) | ((7 * lane + 3) & 15),
  stride: (lane, stride) => stride * lane,
  same_bank: (lane) => 32 * lane,
  broadcast: () => 0,
};
const KEYS = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: -32, ArrowDown: 32, Home: -2047, End: 2047 };
const CELL = 24, BANK_Y = 172; // of the drawing
const all = Array.from({ length: 32 }, (_, index) => index);

function svg(tag, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// Fills the drawing. word(lane) tells a lane's word, or null; move(lane, word) is called when the user moves it. Returns
// draw(words, row), where row is the server's prediction for these words.
function drawing(root, word, move) {
  const middle = (index) => CELL * index + CELL / 2;
  const text = (index, y, content = '') => svg('text', { x: middle(index), y }, content);
  const to = (lane, value) => move(lane, Math.min(Math.max(value, 0), 2047));
  const counts = all.map((bank) => text(bank, BANK_Y + 16));
  const lanes = all.map((lane) => {
    const node = svg('g', { role: 'slider', tabindex: 0, 'aria-label': `Lane ${lane}`, 'aria-valuemin': 0, 'aria-valuemax': 2047 },
      svg('line', { x1: middle(lane), y1: 42, y2: BANK_Y }), svg('circle', { cx: middle(lane), cy: 12, r: 11 }),
      text(lane, 16, lane), text(lane, 38));
    let from = null; // where the pointer took the lane, and its word there
    node.addEventListener('keydown', (event) => {
      if (event.key in KEYS) to(lane, (word(lane) ?? 0) + KEYS[event.key]);
      else if (event.key === 'Delete') move(lane, null);
      else return;
      event.preventDefault();
    });
    node.addEventListener('pointerdown', ({ pointerId, clientX: x, clientY: y }) => {
      node.setPointerCapture(pointerId);
      from = { x, y, word: word(lane) ?? 0 };
    });
    node.addEventListener('pointermove', ({ clientX, clientY }) => {
      const steps = (way) => Math.round(way * 768 / root.clientWidth / CELL);
      const value = from && from.word + steps(clientX - from.x) + 32 * steps(clientY - from.y);
      if (from && value !== word(lane)) to(lane, value);
    });
    node.addEventListener('lostpointercapture', () => { from = null; });
    return node;
  });
  root.append(...all.map((bank) => svg('rect', { x: CELL * bank + 1, y: BANK_Y, width: CELL - 2, height: 22 })), ...counts, ...lanes);

  return (words, { banks, word_bytes: wordBytes, bank_bytes: bankBytes, padded }) => {
    // The words that a lane's bank serves. If words are wider than banks, each half of the warp has its own pass.
    const turn = (lane) => banks[lane] + (wordBytes > bankBytes && lane > 15 ? 32 : 0);
    const unit = (lane) => Math.floor((words[lane] + (padded ? words[lane] >> 5 : 0)) * wordBytes / bankBytes);
    const degree = (lane) => new Set(all.filter((one) => banks[one] !== null && turn(one) === turn(lane)).map(unit)).size;
    for (const node of counts) node.textContent = '';
    lanes.forEach((node, lane) => {
      const bank = banks[lane];
      const served = bank === null ? 0 : degree(lane);
      if (served > 1 && served > counts[bank].textContent) counts[bank].textContent = served;
      node.setAttribute('class', ['out', 'one', 'few', 'many'][(served > 0) + (served > 1) + (served > 7)]);
      node.setAttribute('aria-valuenow', words[lane] ?? 0);
      node.setAttribute('aria-valuetext', served ? `word ${words[lane]}, bank ${bank}, degree ${served}` : 'takes no part');
      node.firstChild.setAttribute('x2', middle(bank ?? lane));
      node.firstChild.setAttribute('visibility', served ? 'visible' : 'hidden');
      node.lastChild.textContent = words[lane] ?? '–';
    });
  };
}

function showStrides(part, { rows, device }) {
  const shared = rows.filter((row) => row.memory === 'shared');
  const { measured, word_bytes: wordBytes, bank_bytes: bankBytes } = shared[0];
  const [plain, padded] = [false, true].map((gaps) => shared.filter((row) => row.padded === gaps));
  const sets = [['degree', 'predicted_degree'], ['passes', 'predicted_wavefronts'], ...measured ? [['cycles', 'latency_cycles']] : []]
    .flatMap(([title, name]) => [[title, plain], [title + ', padded', padded]].map(([label, of]) =>
      ({ label, data: of.map((row) => row[name]), yAxisID: title === 'cycles' ? title : 'y' })));
  figures(part, `Words of ${wordBytes} bytes, banks of ${bankBytes}, ${measured ? 'cycles measured on ' + device : 'predicted, not measured'}`,
    plain, { stride: (row) => row.stride,
      ...Object.fromEntries(sets.map(({ label, data }) => [label, (row) => data[plain.indexOf(row)]])) });
  plot(part, 'Degree by stride', 'line', plain.map((row) => row.stride), sets.filter(({ label }) => !label.startsWith('passes')),
    'stride', 'degree', { scales: measured ? { cycles: { position: 'right', title: { display: true, text: 'cycles' } } } : {} });
}

export function banks(part, { names, devices }) {
  const [form, measure] = part.querySelectorAll('form');
  const { pattern, stride, word_bytes: wordBytes, bank_bytes: bankBytes, offsets } = form.elements;
  const of = (backend) => devices.find((device) => device.backend === backend);
  options(pattern, [...names('AccessPattern').filter((name) => PATTERNS[name]), 'offsets'], 'stride');
  options(wordBytes, names('AccessWord'), 4);
  options(bankBytes, names('AccessWord'), of('cuda')?.shared_bank_bytes || 4);
  measure.hidden = !of('cuda');
  const predicting = of('cpu') ? 'cpu' : 'auto'; // the CPU takes no time of the GPU

  let words;
  const write = () => { offsets.value = words.map((word) => word ?? '-').join(' '); };
  const draw = drawing($('svg', part), (lane) => words[lane], (lane, word) => {
    words[lane] = word;
    write();
    offsets.dispatchEvent(new Event('input', { bubbles: true }));
  });
  const common = { op: 'shared_access', pattern: undefined, stride: undefined };
  const lanes = asker(form, async (signal) => {
    const asked = words;
    const { rows: [row] } = await benchmark(form, { ...common, offsets: asked, backend: predicting }, signal);
    draw(asked, row);
    $('.result', part).textContent = `Degree ${row.predicted_degree}, passes: ${row.predicted_wavefronts}`;
  });
  const strides = (backend) => async (signal) => showStrides(part, await benchmark(form,
    { ...common, patterns: 'stride', padded: undefined, offsets: undefined, backend }, signal));
  const predicted = asker(form, strides(predicting));
  const measured = asker(measure, strides('cuda'));

  function show(control) {
    if (control === offsets) pattern.value = 'offsets';
    const own = pattern.value === 'offsets';
    stride.disabled = pattern.value !== 'stride';
    const written = offsets.value.match(/\d+|-/g) || [];
    words = all.map((lane) => (own ? (written[lane] > '-' ? +written[lane] : null) : PATTERNS[pattern.value](lane, +stride.value)));
    if (!own) write();
    return Promise.all([lanes.ask(), control !== wordBytes && control !== bankBytes && control || predicted.ask()]);
  }
  return { show, stop: () => [lanes, predicted, measured].forEach((one) => one.stop()) };
}
