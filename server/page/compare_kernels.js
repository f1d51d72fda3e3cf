// How many blocks fit on a multiprocessor, by their needs and by tile; and the source of each variant.
import { $, call, make, number } from './base.js';
import { asker, benchmark, figures, options, plot } from './compare_part.js';

// Two tiles of float32 in shared memory. If they have more than 32×32 elements, each thread has several.
const needs = (tile) => ({ tile, threads_per_block: (tile / Math.ceil(tile / 32)) ** 2, shared_bytes: 8 * tile * tile });
const listed = (limiters) => limiters?.join(', ').replaceAll('_', ' ');
const percent = ({ warps, warps_max: most }) => (most ? 100 * warps / most : null);

export function blocks(part, { variants, devices, names }) {
  const form = $('form', part);
  const { compute_capability: capability, tile, threads_per_block: threads, registers_per_thread: registers, shared_bytes: shared } = form.elements;
  const known = names('ComputeCapability');
  options(capability, known, devices.map((one) => one.compute_capability).find((one) => known.includes(one)) || '9.0');
  const tiles = [...new Set(variants.flatMap((one) => [one.tile, ...one.tiles || []]))].filter(Boolean).sort((one, other) => one - other);
  options(tile, ['', ...tiles], 16);
  const kernels = variants.flatMap((one) => (one.occupancy || []).map((entry) => ({ ...entry, kernel: `${one.op} ${one.name}` })));

  const { ask, stop } = asker(form, async (signal) => {
    const own = { threads_per_block: +threads.value, shared_bytes: +shared.value };
    const wanted = [own, ...tiles.map(needs)];
    const every = (name) => [...new Set(wanted.map((one) => one[name]))];
    const { rows } = await benchmark(form, { op: 'occupancy', tile: undefined,
      threads_per_block: every('threads_per_block'), shared_bytes: every('shared_bytes') }, signal);
    const kernel = `two tiles, ${registers.value} registers`;
    const [row, ...byTile] = wanted.map((one) => ({ kernel, ...one, ...rows.find((each) =>
      each.threads_per_block === one.threads_per_block && each.shared_bytes === one.shared_bytes) }));
    $('.result', part).textContent = `Blocks: ${row.blocks}. ${row.warps} of ${row.warps_max} warps, ${number(percent(row))} %. ` +
      `Limited by ${listed(row.limiters)}. Each alone: ${listed(Object.entries(row.blocks_by).map(([name, fit]) => `${name} ${fit ?? 'any'}`))}.`;
    const shown = [...byTile, ...kernels];
    figures(part, 'What a multiprocessor holds', shown, { kernel: (one) => one.kernel, tile: (one) => one.tile,
      threads: (one) => one.threads_per_block, registers: (one) => one.registers_per_thread, 'shared bytes': (one) => one.shared_bytes,
      blocks: (one) => one.blocks, warps: (one) => one.warps, '% of all warps': percent, 'limited by': (one) => listed(one.limiters) });
    // A line for each kernel whose tile can be chosen.
    const lines = [...new Set(shown.map((one) => one.kernel))].map((label) => ({ label, spanGaps: true,
      data: shown.filter((one) => one.kernel === label && one.tile).map((one) => ({ x: `${one.tile}`, y: percent(one) })) }));
    plot(part, 'Occupancy by tile', 'line', tiles.map(String), lines.filter(({ data }) => data.length > 1), 'tile', '% of all warps');
  });
  function show(control) {
    if (control === tile && tile.value) ({ threads_per_block: threads.value, shared_bytes: shared.value } = needs(+tile.value));
    else if (control === threads || control === shared) tile.value = '';
    return ask();
  }
  return { show, stop };
}

export function code(part, { variants }) {
  const form = $('form', part);
  const { source } = form.elements;
  const choices = new Map(variants.flatMap((one) => one.sources.map((file) => [`${one.backend}/${one.op}/${one.name}/${file}`, { one, file }])));
  const first = variants.find((one) => one.backend === 'cuda' && one.tile);
  for (const [value, { one, file }] of choices)
    source.append(make('option', { value, selected: one === first }, `${one.backend}: ${one.op} ${one.name}, ${file.split('/').pop()}`));
  const { ask, stop } = asker(form, async (signal) => {
    const { one, file } = choices.get(source.value);
    const text = await (await call(`v1/variants/${one.name}/source?backend=${one.backend}&op=${one.op}&file=${file}`, { signal })).text();
    $('.result', part).textContent = one.summary + (one.available ? '' : ` (here unavailable: ${one.unavailable_because})`);
    $('code', part).textContent = text;
    $('span', part).textContent = text.trimEnd().split('\n').map((_, line) => line + 1).join('\n');
  });
  return { show: () => ask(), stop };
}
