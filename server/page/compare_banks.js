// Where do banks conflict? A drawing of 32 lanes to move, with what the server predicts for them, and all strides.
import { $ } from './base.js';
import { asker, figures, options, plot, text } from './compare_part.js';

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
const middle = (index) => 24 * index + 12;

// Fills the drawing. move(lane, steps, from) is called when the user moves a lane by so many words, from the word `from`
// or from its own. Returns draw(words, row), where row is the server's prediction for these words.
function drawing(root, move) {
  root.innerHTML = all.map((bank) => `<rect x="${24 * bank + 1}" y="172" width="22" height="22"/>
    <text x="${middle(bank)}" y="188"></text>`).join('') + all.map((lane) => `<g class="out" role="slider" tabindex="0"
    aria-label="Lane ${lane}" aria-valuemin="0" aria-valuemax="2047"><line x1="${middle(lane)}" y1="42" y2="172"/>
    <circle cx="${middle(lane)}" cy="12" r="10"/><text x="${middle(lane)}" y="16">${lane}</text>
    <text x="${middle(lane)}" y="38"></text></g>`).join('');
  const lanes = [...root.querySelectorAll('g')];
  const counts = root.querySelectorAll('rect + text');
  let held = null; // where the pointer took a lane, and its word there
  const laneOf = (event) => lanes.indexOf(event.target.closest('g'));
  root.addEventListener('keydown', (event) => {
    if (!KEYS[event.key]) return;
    event.preventDefault();
    move(laneOf(event), KEYS[event.key]);
  });
  root.addEventListener('pointerdown', (event) => {
    const lane = laneOf(event);
    if (lane < 0) return;
    lanes[lane].setPointerCapture(event.pointerId);
    held = { lane, x: event.clientX, y: event.clientY, word: +lanes[lane].ariaValueNow };
  });
  root.addEventListener('pointermove', ({ clientX, clientY }) => {
    const cells = (pixels) => Math.round(pixels * 32 / root.clientWidth);
    if (held) move(held.lane, cells(clientX - held.x) + 32 * cells(clientY - held.y), held.word);
  });
  root.addEventListener('lostpointercapture', () => { held = null; });

  return (words, { banks, word_bytes: wordBytes, bank_bytes: bankBytes, padded }) => {
    // If words are wider than banks, each half of the warp has its own pass.
    const pass = (lane) => banks[lane] + (wordBytes > bankBytes && lane > 15 ? ' later' : '');
    const unit = (lane) => Math.floor((words[lane] + (padded ? words[lane] >> 5 : 0)) * wordBytes / bankBytes);
    for (const node of counts) node.textContent = '';
    lanes.forEach((node, lane) => {
      const [bank, word] = [banks[lane], words[lane]];
      const degree = bank === null ? 0 : new Set(all.filter((one) => pass(one) === pass(lane)).map(unit)).size;
      if (degree > 1 && degree > counts[bank].textContent) counts[bank].textContent = degree;
      node.setAttribute('class', ['out', 'one', 'few', 'many'][(degree > 0) + (degree > 1) + (degree > 7)]);
      node.ariaValueNow = word ?? 0;
      node.ariaValueText = degree ? `word ${word}, bank ${bank}, degree ${degree}` : 'takes no part';
      node.firstChild.setAttribute('x2', middle(bank ?? lane));
      node.lastChild.textContent = word ?? '–';
    });
  };
}

function showStrides(part, { rows, device }) {
  const shared = rows.filter((row) => row.memory === 'shared');
  const [{ measured }] = shared;
  figures(part, measured ? 'Cycles measured on ' + device : 'Predicted, not measured', shared,
    'stride', 'padded', 'predicted_degree', ['predicted passes', (row) => row.predicted_wavefronts], 'latency_cycles');
  const names = measured ? ['predicted_degree', 'latency_cycles'] : ['predicted_degree'];
  const sets = names.flatMap((name) => [false, true].map((padded) => ({ label: text(name) + (padded ? ', padded' : ''),
    data: shared.filter((row) => row.padded === padded).map((row) => row[name]) })));
  plot(part, 'line', all.map((index) => index + 1), sets, 'stride', 'degree or cycles');
  return '';
}

export function banks(part) {
  const form = $('form', part);
  const { pattern, stride, offsets } = form;
  options(pattern, [...Object.keys(PATTERNS), 'offsets']);
  let words;
  const write = () => { offsets.value = words.map((word) => word ?? '-').join(' '); };
  const draw = drawing($('svg', part), (lane, steps, from = words[lane]) => {
    const word = Math.min(Math.max(from + steps, 0), 2047);
    if (word === words[lane]) return;
    words[lane] = word;
    write();
    offsets.dispatchEvent(new Event('input', { bubbles: true }));
  });
  const access = (more) =>
    ({ op: 'shared_access', word_bytes: +form.word_bytes.value, bank_bytes: +form.bank_bytes.value, ...more });
  const lanes = asker(form, async (post) => {
    const asked = words;
    // Writes cost the same, and are predicted at once: a GPU would measure reads.
    const { rows: [row] } = await post(access({ offsets: asked, padded: form.padded.checked, access: 'write' }));
    draw(asked, row);
    return `Degree ${row.predicted_degree}, passes: ${row.predicted_wavefronts}`;
  });
  const strides = asker($('.drawn', part), async (post) =>
    showStrides(part, await post(access({ patterns: 'stride' }))));

  async function show(control) {
    if (control === offsets) pattern.value = 'offsets';
    const word = PATTERNS[pattern.value];
    const written = offsets.value.match(/\d+|-/g) || [];
    words = all.map((lane) => (word ? word(lane, +stride.value) : written[lane] > '-' ? +written[lane] : null));
    if (word) write();
    stride.disabled = pattern.value !== 'stride';
    await lanes.show(); // a GPU measures strides, and then predicts nothing
    if (control?.name.endsWith('_bytes') !== false) await strides.show();
  }
  return { show, stop: () => [lanes, strides].forEach((one) => one.stop()) };
}
