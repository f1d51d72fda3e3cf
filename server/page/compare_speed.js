// Which kernel is fastest, and what limits it? Times variants of products or transpositions, and compares them with the
// measured rates of the device.
import { $, make, number } from './base.js';
import { asker, figures, options, plot } from './part.js';

// Variants whose boxes are checked at first.
const FIRST = ['naive', 'tiled_16', 'tiled_32', 'register_tiled', 'blas', 'shared', 'padded'];
const COPIED = 4096; // rows and columns of the matrix whose copy measures the memory

const label = (row) => `${row.backend}:${row.variant}` + (row.tile ? '/' + row.tile : '');
const speedOf = (row) => row.gflops ?? row.gigabytes_per_second;
const wrong = (row) => row.max_error === 'Infinity' || row.max_error > 1;
const isNoisy = ({ kernel_ms: ms }) => ms && ms.max > 4 / 3 * ms.min;
const share = (row) => 100 * (row.of_blas ?? row.of_copy) || null;

function showSpeed(part, { op, rows, m, k, n, dtype, device }) {
  const isProduct = op === 'matmul', [rate, of] = isProduct ? ['GFLOP/s', '% of blas'] : ['GB/s', '% of copy'];
  figures(part, `m ${m}, ${k ? `k ${k}, ` : ''}n ${n}, ${dtype}, on ${device}. Loads, sectors and passes are predicted.`, rows,
    ['variant', label], 'ran', ['median ms', (row) => row.kernel_ms && row.kernel_ms.median],
    [rate, speedOf], [of, share], 'relative_error', [isProduct ? 'error / bound' : 'wrong elements', (row) => row.max_error],
    'global_loads', 'global_load_sectors', 'shared_load_passes', 'shared_store_passes', 'bank_conflict_passes', 'repeats',
    ['remark', (row) => row.error?.detail ?? (wrong(row) ? 'wrong: the error exceeds its bound' : isNoisy(row) ?
      'noisy: the times differ by more than a third' : null)]);
  const timed = rows.filter(speedOf);
  const told = (row) => (wrong(row) ? ', wrong' : share(row) ? `, ${number(share(row))} %` : '');
  $('.drawn', part).style.height = 6 + 2 * timed.length + 'rem';
  plot(part, 'bar', timed.map((row) => label(row) + told(row)),
    [{ label: rate, data: timed.map(speedOf) }], rate, 'variant, ' + of, { indexAxis: 'y' });
}

// Draws the roofline of one backend. `timed` has its rows, the fastest first. `rate` is the GB/s of a plain copy.
function showRoof(part, { m, k, n, dtype }, timed, rate) {
  // Operations for each byte of the predicted loads and stores. On a CPU the server predicts only the loaded elements.
  const bytes = (dtype.match(/\d+/) || 8) / 8; // bool has one byte
  const rows = timed.map((row) => ({ label: label(row), y: row.gflops,
    x: row.arithmetic_intensity ?? (row.global_loads && 2 * m * k * n / (row.global_loads * bytes)) }));
  const [best] = rows;
  $('.note', part).textContent = `Flat: ${best.label}, the fastest. Sloped: a plain copy of ${COPIED}×${COPIED} ` +
    `elements, ${number(rate)} GB/s; caches lift a kernel above it. FLOP/byte is predicted, before caches, and ` +
    'unknown of a library.';
  figures(part, 'The last benchmark', rows, ['variant', (row) => row.label], ['FLOP/byte', ({ x }) => x],
    ['GFLOP/s', ({ y }) => y], ['GFLOP/s that memory allows', ({ x }) => x && rate * x],
    ['% of that', ({ x, y }) => x && 100 * y / rate / x]);
  const points = rows.filter(({ x }) => x);
  const xs = [best.y / rate, ...points.map(({ x }) => x)];
  const line = [Math.min(...xs) / 2, xs[0], Math.max(...xs) * 2].map((x) => ({ x, y: Math.min(best.y, rate * x) }));
  plot(part, 'scatter', [], [{ label: 'measured roof', data: line, showLine: true, pointRadius: 0, clip: 2 },
    ...points.map((row) => ({ label: row.label, data: [row], pointRadius: 6 }))],
  'FLOP/byte', 'GFLOP/s', { axis: { type: 'logarithmic' } });
}

export function speed(part, variants) {
  const form = $('form', part), roof = part.nextElementSibling;
  const { op, m, k, n, dtype, repeats } = form;
  const usable = variants.filter((one) => one.available);
  const boxes = usable.flatMap((one) => ['', ...one.tiles || []].map((tile) => {
    const value = `${one.backend}:${one.name}${tile && '/' + tile}`;
    const checked = one.backend === usable[0].backend && !tile && FIRST.includes(one.name);
    const box = make('input', { type: 'checkbox', name: 'variants', value, checked });
    const wrongly = one.wrong_on_purpose ? ' (wrong on purpose)' : '';
    $('fieldset', form).append(make('label', { class: 'check', title: one.summary }, box, value, wrongly));
    return { box, dtypes: one.dtypes, of: one.op };
  }));
  options(dtype, boxes.flatMap(({ dtypes }) => dtypes));

  const rates = {}; // GB/s of a plain copy, by backend
  // Finds the rate of a plain copy. A row of a transposition gives its speed as a share of this rate. Prefers a variant
  // with tiles, because it is fast.
  async function copyRate(post, backend) {
    const { name } = usable.filter((one) => one.op === 'transpose' && one.backend === backend)
      .sort((one, other) => other.tile - one.tile)[0];
    const { rows: [row] } = await post(
      { op: 'transpose', m: COPIED, n: COPIED, variants: [`${backend}:${name}`], repeats: 3 },
      'Timing a plain copy', $('.note', roof));
    if (row.error) throw new Error(row.error.detail);
    return row.gigabytes_per_second / row.of_copy;
  }
  const { stop } = asker(form, async (post) => {
    const isProduct = op.value === 'matmul';
    const reply = await post({ op: op.value, m: +m.value, ...isProduct && { k: +k.value }, n: +n.value,
      dtype: dtype.value, repeats: +repeats.value, variants: new FormData(form).getAll('variants') }, 'Timing the variants');
    reply.rows.sort((one, other) => speedOf(other) - speedOf(one));
    showSpeed(part, reply);
    const right = reply.rows.filter((row) => row.gflops && !wrong(row));
    if (!isProduct || !right.length) {
      $('.drawn', roof).hidden = true;
      $('.figures', roof).replaceChildren();
      $('.note', roof).textContent = isProduct ? 'No variant of the last benchmark has a right result.' :
        'Memory limits a transposition: it computes nothing. “% of copy” above is its share of a plain copy’s rate.';
      return '';
    }
    const { backend } = right[0];
    rates[backend] ||= await copyRate(post, backend);
    showRoof(roof, reply, right.filter((row) => row.backend === backend), rates[backend]);
    return '';
  });
  function show() {
    k.parentNode.hidden = k.disabled = op.value !== 'matmul';
    for (const { box, dtypes, of } of boxes) box.disabled = box.parentNode.hidden = of !== op.value || !dtypes.includes(dtype.value);
  }
  return { show, stop };
}
