// Where do banks conflict? A drawing of 32 lanes to move, with what the server predicts for them, and all strides.
import { $ } from './base.js';
import { asker, figures, options, plot } from './compare_part.js';

// The word of each lane, as the server has them (gpu/lab/access.h).
const PATTERNS = {
  stride: (lane, stride) => stride * lane,
  linear: (lane) => lane,
  permuted: (lane) => (lane & 16) | ((7 * lane + 3) & 15),
  same_bank: (lane) => 32 * lane,
  broadcast: () => 0,
};
const KEYS = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 32, ArrowUp: -32 };
const all = Array.from({ length: 32 }, (_, index) => index);

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  set(node, attributes);
  node.append(...children);
  return node;
}

// Fills the drawing; word(lane) is a lane's word, move(lane, word) is called when the user moves it. Returns
// draw(words, row), where row is the server's prediction for these words.
function drawing(root, word, move) {
  const middle = (index) => 24 * index + 12;
  const text = (index, y, content = '') => svg('text', { x: middle(index), y }, content);
  const counts = all.map((bank) => text(bank, 188));
  const lanes = all.map((lane) => {
    const node = svg('g', { role: 'slider', tabindex: 0, 'aria-label': `Lane ${lane}`, 'aria-valuemin': 0, 'aria-valuemax': 2047 },
      svg('line', { x1: middle(lane), y1: 42, y2: 172 }), svg('circle', { cx: middle(lane), cy: 12, r: 10 }),
      text(lane, 16, lane), text(lane, 38));
    const by = (from, steps) => move(lane, Math.min(Math.max(from + steps, 0), 2047));
    let from = null; // where the pointer took the lane, and its word there
    node.addEventListener('keydown', (event) => {
      if (!KEYS[event.key]) return;
      event.preventDefault();
      by(word(lane), KEYS[event.key]);
    });
    node.addEventListener('pointerdown', ({ pointerId, clientX, clientY }) => {
      node.setPointerCapture(pointerId);
      from = [clientX, clientY, word(lane)];
    });
    node.addEventListener('pointermove', ({ clientX, clientY }) => {
      const cells = (pixels) => Math.round(pixels * 32 / root.clientWidth);
      if (from) by(from[2], cells(clientX - from[0]) + 32 * cells(clientY - from[1]));
    });
    node.addEventListener('lostpointercapture', () => { from = null; });
    return node;
  });
  root.append(...all.map((bank) => svg('rect', { x: 24 * bank + 1, y: 172, width: 22, height: 22 })), ...counts, ...lanes);

  return (words, { banks, word_bytes: wordBytes, bank_bytes: bankBytes, padded }) => {
    // If words are wider than banks, each half of the warp has its own pass.
    const pass = (lane) => banks[lane] + (wordBytes > bankBytes && lane > 15 ? ' later' : '');
    const unit = (lane) => Math.floor((words[lane] + (padded ? words[lane] >> 5 : 0)) * wordBytes / bankBytes);
    for (const node of counts) node.textContent = '';
    lanes.forEach((node, lane) => {
      const bank = banks[lane];
      const degree = bank === null ? 0 : new Set(all.filter((one) => pass(one) === pass(lane)).map(unit)).size;
      if (degree > 1 && degree > counts[bank].textContent) counts[bank].textContent = degree;
      set(node, { class: ['out', 'one', 'few', 'many'][(degree > 0) + (degree > 1) + (degree > 7)], 'aria-valuenow': words[lane] ?? 0,
        'aria-valuetext': degree ? `word ${words[lane]}, bank ${bank}, degree ${degree}` : 'takes no part' });
      set(node.firstChild, { x2: middle(bank ?? lane), visibility: degree ? 'visible' : 'hidden' });
      node.lastChild.textContent = words[lane] ?? '–';
    });
  };
}

function showStrides(part, { rows, device }) {
  const [plain, padded] = [false, true].map((gaps) => rows.filter((row) => row.memory === 'shared' && row.padded === gaps));
  const columns = ['predicted_degree', 'predicted_wavefronts', 'latency_cycles'].flatMap((name) =>
    [[name, (row) => row[name]], [name + ', padded', (row) => padded[plain.indexOf(row)][name]]]);
  figures(part, plain[0].measured ? 'Cycles measured on ' + device : 'Predicted, not measured', plain, 'stride', ...columns);
  const sets = columns.filter(([name]) => !name.includes('wavefronts'))
    .map(([name, read]) => ({ label: name.replaceAll('_', ' '), data: plain.map(read) })).filter(({ data }) => data[0]);
  plot(part, 'line', plain.map((row) => row.stride), sets, 'stride', 'degree or cycles');
  return '';
}

export function banks(part, { devices }) {
  const [form, measure] = part.querySelectorAll('form');
  const { pattern, stride, offsets, word_bytes: wordBytes, bank_bytes: bankBytes } = form;
  const gpu = devices.find((device) => device.backend === 'cuda');
  const predictor = devices.some((device) => device.backend === 'cpu') ? 'cpu' : 'auto'; // the CPU takes no time of the GPU
  options(pattern, [...Object.keys(PATTERNS), 'offsets']);
  bankBytes.value = gpu?.shared_bank_bytes || 4;
  measure.hidden = !gpu;

  let words;
  const write = () => { offsets.value = words.map((word) => word ?? '-').join(' '); };
  const draw = drawing($('svg', part), (lane) => words[lane], (lane, word) => {
    if (word === words[lane]) return;
    words[lane] = word;
    write();
    offsets.dispatchEvent(new Event('input', { bubbles: true }));
  });
  const access = (more) => ({ op: 'shared_access', word_bytes: +wordBytes.value, bank_bytes: +bankBytes.value, ...more });
  const lanes = asker(form, async (post) => {
    const asked = words;
    const { rows: [row] } = await post(access({ offsets: asked, padded: form.padded.checked, backend: predictor }));
    draw(asked, row);
    return `Degree ${row.predicted_degree}, passes: ${row.predicted_wavefronts}`;
  });
  const strides = (backend) => async (post) => showStrides(part, await post(access({ patterns: 'stride', backend })));
  const predicted = asker($('.drawn', part), strides(predictor));
  const measured = asker(measure, strides('cuda'));

  function show(control) {
    if (control === offsets) pattern.value = 'offsets';
    const word = PATTERNS[pattern.value];
    const written = offsets.value.match(/\d+|-/g) || [];
    words = all.map((lane) => (word ? word(lane, +stride.value) : written[lane] > '-' ? +written[lane] : null));
    if (word) write();
    stride.disabled = pattern.value !== 'stride';
    return Promise.all([lanes.ask(), control?.name.endsWith('_bytes') === false || predicted.ask()]);
  }
  return { show, stop: () => [lanes, predicted, measured].forEach((one) => one.stop()) };
}
