// How many blocks fit on a multiprocessor, by their needs and by tile; and the source of each variant.
import { $, call, make } from './base.js';
import { asker, figures, plot, text } from './compare_part.js';

// Two tiles of float32 in shared memory. If they have more than 32×32 elements, each thread has several.
const needs = (tile) =>
  ({ kernel: 'two tiles', tile, threads: (tile / Math.ceil(tile / 32)) ** 2, shared: 8 * tile * tile });
const percent = ({ warps, warps_max: most }) => (most ? 100 * warps / most : null);

export function blocks(part, variants) {
  const form = $('form', part);
  const tiles = new Set(variants.flatMap((one) => [one.tile, ...one.tiles || []]).sort((one, other) => one - other));
  tiles.delete(null);
  const known = variants.flatMap((one) =>
    (one.occupancy || []).map((entry) => ({ ...entry, kernel: `${one.op} ${one.name}` })));
  return asker(form, async (post) => {
    const own = { kernel: 'yours', threads: +form.threads.value, shared: +form.shared.value };
    const asked = await Promise.all([own, ...[...tiles].map(needs)].map(async ({ kernel, tile, threads, shared }) => {
      const { rows: [row] } = await post({ op: 'occupancy', threads_per_block: threads, shared_bytes: shared,
        registers_per_thread: +form.registers.value });
      return { kernel, tile, ...row };
    }));
    const rows = [...asked, ...known];
    figures(part, 'What a multiprocessor holds', rows, 'kernel', 'tile', 'threads_per_block', 'registers_per_thread',
      'shared_bytes', 'blocks', 'warps', ['% of all warps', percent], ['limited by', (row) => row.limiters],
      ['blocks by limit', (row) => row.blocks_by]);
    plot(part, 'bar', rows.map(({ kernel, tile }) => kernel + (tile ? ', tile ' + tile : '')),
      [{ label: '% of all warps', data: rows.map(percent) }], 'kernel', '% of all warps');
    const [{ compute_capability: chip, blocks: fit, limiters }] = rows;
    return `Blocks on compute capability ${chip}: ${fit}, limited by ${text(limiters)}`;
  });
}

export function code(part, variants) {
  const { source } = $('form', part);
  const choices = variants.flatMap((one) => (one.sources || []).map((file) => ({ one, file })));
  const first = choices.find(({ one }) => one.backend === 'cuda' && one.tile);
  source.append(...choices.map((choice) => make('option', { selected: choice === first },
    [choice.one.backend, choice.one.op, choice.one.name, choice.file].join('/'))));
  return asker($('form', part), async (post, signal) => {
    const { one: { name, backend, op, summary, unavailable_because: why }, file } = choices[source.selectedIndex];
    const reply = await call(`v1/variants/${name}/source?backend=${backend}&op=${op}&file=${file}`, { signal });
    const lines = await reply.text();
    $('code', part).textContent = lines;
    $('span', part).textContent = lines.trimEnd().split('\n').map((_, line) => line + 1).join('\n');
    return summary + (why ? ` (here unavailable: ${why})` : '');
  });
}
