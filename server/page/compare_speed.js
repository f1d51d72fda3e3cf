// Which kernel is fastest, and what limits it? Times variants, and holds them against the measured rates of the device.
import { $, make, number } from './base.js';
import { asker, benchmark, figures, options, plot } from './compare_part.js';

const FIRST = ['naive', 'tiled_16', 'tiled_32', 'register_tiled', 'blas']; // checked at first, if the server has them
const COPIED = 4096; // the edge of the matrix whose copy measures the memory

let last = { rows: [] }; // the last benchmark: timed rows first, by speed
let showRoof;

const label = (row) => `${row.backend}:${row.variant}` + (row.tile ? '/' + row.tile : '') + (row.ran ? ` (${row.ran})` : '');
const wrong = (row) => row.max_error === 'Infinity' || row.max_error > 1;

function showSpeed(part) {
  const { rows, m, k, n, dtype, device } = last;
  const predicted = ['global_loads', 'global_load_sectors', 'shared_load_passes', 'shared_store_passes', 'bank_conflict_passes'];
  figures(part, `m ${m}, k ${k}, n ${n}, ${dtype}, on ${device}. Loads, sectors and passes are predicted.`, rows, {
    variant: label, 'median ms': (row) => row.kernel_ms?.median, 'GFLOP/s': (row) => row.gflops,
    '% of blas': (row) => row.of_blas && 100 * row.of_blas, 'relative error': (row) => row.relative_error,
    'error / bound': (row) => row.max_error,
    ...Object.fromEntries(predicted.filter((name) => rows.some((row) => row[name] != null))
      .map((name) => [name.replaceAll('_', ' '), (row) => row[name]])),
    repeats: (row) => row.repeats,
    remark: (row) => (row.error ? `${row.error.code}: ${row.error.detail}` : wrong(row) ? 'wrong: the error exceeds its bound' : ''),
  });
  const timed = rows.filter((row) => row.gflops);
  $('.drawn', part).style.height = 6 + 2 * timed.length + 'rem';
  const bars = (name, are, own) => ({ label: name, data: timed.map((row) => (are === wrong(row) ? row.gflops : null)), colour: own });
  plot(part, 'GFLOP/s by variant, the fastest first', 'bar',
    timed.map((row) => label(row) + (row.of_blas ? `, ${number(100 * row.of_blas)} % of blas` : '')),
    [bars('right', false), bars('wrong', true, 'bad')], 'GFLOP/s', '',
    { indexAxis: 'y', plugins: { legend: { display: timed.some(wrong) } }, axis: { stacked: true } });
}

export function speed(part, { variants, devices }) {
  const form = $('form', part);
  const { m, k, n, dtype } = form.elements;
  const { backend } = devices[0];
  const usable = variants.filter((one) => one.op === 'matmul' && one.available);
  options(dtype, usable.flatMap((one) => one.dtypes));
  if (backend === 'cuda') for (const edge of [m, k, n]) edge.defaultValue = 1024;
  const boxes = usable.flatMap((one) => ['', ...one.tiles || []].map((tile) => {
    const value = `${one.backend}:${one.name}${tile && '/' + tile}`;
    const checked = one.backend === backend && !tile && FIRST.includes(one.name);
    const box = make('input', { type: 'checkbox', name: 'variants', value, checked });
    $('fieldset', form).append(make('label', { class: 'check' }, box, value, one.wrong_on_purpose ? ' (wrong on purpose)' : ''));
    return { one, box };
  }));
  const { stop } = asker(form, async (signal) => {
    const chosen = boxes.filter(({ box }) => box.checked && !box.disabled).map(({ box }) => box.value);
    if (!chosen.length) throw new Error('Check a variant.');
    last = await benchmark(form, { variants: chosen }, signal);
    last.rows.sort((one, other) => (other.gflops ?? -1) - (one.gflops ?? -1));
    showSpeed(part);
    showRoof();
  });
  function show() {
    for (const { one, box } of boxes) box.disabled = box.parentNode.hidden = !one.dtypes.includes(dtype.value);
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
    form.hidden = !best?.gflops;
    if (form.hidden) return;
    const rate = copy[best.backend];
    const points = last.rows.filter((row) => row.gflops && row.backend === best.backend)
      .map((row) => ({ label: label(row), x: intensity(row), y: row.gflops }));
    const allowed = ({ x }) => (rate && x ? rate * x : null);
    $('.note', part).textContent = `Flat roof: the fastest above, ${label(best)} with ${number(best.gflops)} GFLOP/s. ` +
      (rate ? `Sloped roof: a plain copy of ${COPIED}×${COPIED} elements, ${number(rate)} GB/s; caches lift a kernel above it.`
        : 'Measure the memory for the sloped roof.') + ' FLOP/byte is predicted, before any cache; a library has none.';
    figures(part, 'The last benchmark below the roofs', points, { variant: (point) => point.label, 'FLOP/byte': ({ x }) => x,
      'GFLOP/s': ({ y }) => y, 'memory allows': allowed, '% of that': (point) => allowed(point) && 100 * point.y / allowed(point) });
    const placed = points.filter(({ x }) => x);
    const ridge = rate ? [best.gflops / rate] : [];
    const xs = [...ridge, ...placed.map(({ x }) => x)];
    const line = [Math.min(...xs) / 2, ...ridge, Math.max(...xs) * 2]
      .map((x) => ({ x, y: Math.min(best.gflops, (rate || Infinity) * x) }));
    plot(part, 'GFLOP/s by FLOP/byte, below the measured roofs', 'scatter', [],
      [{ label: 'measured roof', data: line, showLine: true, pointRadius: 0, colour: 'ink' },
        ...placed.map((point) => ({ label: point.label, data: [point], pointRadius: 6 }))],
      'FLOP/byte', 'GFLOP/s', { axis: { type: 'logarithmic' } });
  };
  const { stop } = asker(form, async (signal) => {
    const { backend } = last.rows[0];
    const one = variants.filter((row) => row.op === 'transpose' && row.backend === backend && row.available)
      .sort((row, other) => other.tile - row.tile)[0];
    const { rows: [row] } = await benchmark(form, { op: 'transpose', m: COPIED, n: COPIED,
      dtype: one.dtypes[0], variants: [`${backend}:${one.name}`], repeats: 3 }, signal);
    if (row.error) throw new Error(row.error.detail);
    copy[backend] = row.gigabytes_per_second / row.of_copy;
    showRoof();
  });
  return { show: showRoof, stop };
}
