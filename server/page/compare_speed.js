// Which kernel is fastest, and what limits it? Times variants, and holds them against the measured rates of the device.
import { $, make, number } from './base.js';
import { asker, figures, options, plot } from './compare_part.js';

const FIRST = ['naive', 'tiled_16', 'tiled_32', 'register_tiled', 'blas']; // checked at first, if the server has them
const COPIED = 4096; // the edge of the matrix whose copy measures the memory

let last = { rows: [] }; // the last benchmark, the fastest first
let showRoof;

const label = (row) => `${row.backend}:${row.variant}` + (row.tile ? '/' + row.tile : '');
const wrong = (row) => row.max_error === 'Infinity' || row.max_error > 1;
const ofBlas = (row) => row.of_blas && 100 * row.of_blas;

export function speed(part, { variants, devices: [{ backend }] }) {
  const form = $('form', part);
  const usable = variants.filter((one) => one.op === 'matmul' && one.available);
  options(form.dtype, usable.flatMap((one) => one.dtypes));
  if (backend === 'cuda') form.m.value = form.k.value = form.n.value = 1024;
  const boxes = usable.flatMap((one) => ['', ...one.tiles || []].map((tile) => {
    const value = `${one.backend}:${one.name}${tile && '/' + tile}`;
    const checked = one.backend === backend && !tile && FIRST.includes(one.name);
    const box = make('input', { type: 'checkbox', name: 'variants', value, checked });
    $('fieldset', form).append(make('label', { class: 'check' }, box, value, one.wrong_on_purpose ? ' (wrong on purpose)' : ''));
    return { one, box };
  }));
  const { stop } = asker(form, async (post) => {
    last = await post({ m: +form.m.value, k: +form.k.value, n: +form.n.value, dtype: form.dtype.value,
      repeats: +form.repeats.value, variants: new FormData(form).getAll('variants') });
    const { rows, m, k, n, dtype, device } = last;
    rows.sort((one, other) => other.gflops - one.gflops);
    figures(part, `m ${m}, k ${k}, n ${n}, ${dtype}, on ${device}. Loads, sectors and passes are predicted.`, rows,
      ['variant', label], 'ran', ['median ms', (row) => row.kernel_ms && row.kernel_ms.median], ['GFLOP/s', (row) => row.gflops],
      ['% of blas', ofBlas], 'relative_error', ['error / bound', (row) => row.max_error], 'global_loads', 'global_load_sectors',
      'shared_load_passes', 'shared_store_passes', 'bank_conflict_passes', 'repeats',
      ['remark', (row) => (row.error ? row.error.detail : wrong(row) ? 'wrong: the error exceeds its bound' : null)]);
    const timed = rows.filter((row) => row.gflops);
    $('.drawn', part).style.height = 6 + 2 * timed.length + 'rem';
    plot(part, 'bar', timed.map((row) => label(row) + (wrong(row) ? ', wrong' : row.of_blas ? `, ${number(ofBlas(row))} % of blas` : '')),
      [{ label: 'GFLOP/s', data: timed.map((row) => row.gflops) }], 'GFLOP/s', 'variant', { indexAxis: 'y' });
    showRoof();
    return '';
  });
  function show() {
    for (const { one, box } of boxes) box.disabled = box.parentNode.hidden = !one.dtypes.includes(form.dtype.value);
  }
  return { show, stop };
}

// Operations for each byte that loads and stores ask for. On a CPU the server predicts the loaded elements alone.
function intensity(row) {
  const bytes = (last.dtype.match(/\d+/) || 8) / 8; // bool has one
  return row.arithmetic_intensity ?? (row.global_loads && 2 * last.m * last.k * last.n / (row.global_loads * bytes));
}

export function roof(part, { variants }) {
  const form = $('form', part);
  const copy = {}; // by backend: GB/s of a plain copy
  showRoof = function show() {
    const best = last.rows[0];
    if (form.hidden = !best?.gflops) return;
    const rate = copy[best.backend];
    const rows = last.rows.filter((row) => row.gflops && row.backend === best.backend)
      .map((row) => ({ label: label(row), x: intensity(row), y: row.gflops }));
    const allowed = ({ x }) => (rate && x ? rate * x : null);
    $('.note', part).textContent = `Flat: ${label(best)}, the fastest above. ` + (rate
      ? `Sloped: a plain copy of ${COPIED}×${COPIED} elements, ${number(rate)} GB/s. Caches lift a kernel above it.`
      : 'Measure the memory for the sloped part.') + ' FLOP/byte is predicted, before any cache; of a library it is unknown.';
    figures(part, 'The last benchmark', rows, ['variant', (row) => row.label], ['FLOP/byte', ({ x }) => x], ['GFLOP/s', ({ y }) => y],
      ['GFLOP/s that memory allows', allowed], ['% of that', (row) => allowed(row) && 100 * row.y / allowed(row)]);
    const placed = rows.filter(({ x }) => x);
    const ridge = rate ? [best.gflops / rate] : [];
    const xs = [...ridge, ...placed.map(({ x }) => x)];
    const line = [Math.min(...xs) / 2, ...ridge, Math.max(...xs) * 2]
      .map((x) => ({ x, y: Math.min(best.gflops, (rate || Infinity) * x) }));
    plot(part, 'scatter', [], [{ label: 'measured roof', data: line, showLine: true, pointRadius: 0, clip: 2 },
      ...placed.map((row) => ({ label: row.label, data: [row], pointRadius: 6 }))], 'FLOP/byte', 'GFLOP/s', { axis: { type: 'logarithmic' } });
  };
  const { stop } = asker(form, async (post) => {
    const { backend } = last.rows[0];
    const one = variants.filter((row) => row.op === 'transpose' && row.backend === backend && row.available)
      .sort((row, other) => other.tile - row.tile)[0];
    const { rows: [row] } = await post({ op: 'transpose', m: COPIED, n: COPIED, variants: [`${backend}:${one.name}`], repeats: 3 });
    if (row.error) throw new Error(row.error.detail);
    copy[backend] = row.gigabytes_per_second / row.of_copy;
    showRoof();
    return '';
  });
  return { show: showRoof, stop };
}
