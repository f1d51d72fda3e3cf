// How many blocks fit on a multiprocessor, by their needs and by tile; and the source of each variant.
import { $, call, make } from './base.js';
import { asker, figures, plot, text } from './compare_part.js';

// Two tiles of float32 in shared memory. If they have more than 32×32 elements, each thread has several.
const needs = (tile) => ({ kernel: 'two tiles', tile, threads_per_block: (tile / Math.ceil(tile / 32)) ** 2, shared_bytes: 8 * tile * tile });
const percent = ({ warps, warps_max: most }) => (most ? 100 * warps / most : null);

export function blocks(part, { variants }) {
  const form = $('form', part);
  const tiles = [...new Set(variants.flatMap((one) => [one.tile, ...one.tiles || []]))].filter(Boolean).sort((one, other) => one - other);
  const kernels = variants.flatMap((one) => (one.occupancy || []).map((entry) => ({ ...entry, kernel: `${one.op} ${one.name}` })));
  const { ask, stop } = asker(form, async (post) => {
    const [threads, shared] = [+form.threads_per_block.value, +form.shared_bytes.value];
    const wanted = [{ kernel: 'yours', threads_per_block: threads, shared_bytes: shared }, ...tiles.map(needs)];
    const every = (name) => [...new Set(wanted.map((one) => one[name]))];
    const { rows } = await post({ op: 'occupancy', registers_per_thread: +form.registers_per_thread.value,
      threads_per_block: every('threads_per_block'), shared_bytes: every('shared_bytes') });
    const shown = [...wanted.map((one) => ({ ...one, ...rows.find((row) =>
      row.threads_per_block === one.threads_per_block && row.shared_bytes === one.shared_bytes) })), ...kernels];
    const [{ blocks: fit, limiters, compute_capability: chip }] = shown;
    figures(part, 'What a multiprocessor holds', shown, 'kernel', 'tile', 'threads_per_block', 'registers_per_thread', 'shared_bytes',
      'blocks', 'warps', ['% of all warps', percent], ['limited by', (one) => one.limiters], 'blocks_by');
    // A line for each kernel whose tile can be chosen.
    const lines = [...new Set(shown.map((one) => one.kernel))].map((label) => ({ label, spanGaps: true,
      data: shown.filter((one) => one.kernel === label && one.tile).map((one) => ({ x: `${one.tile}`, y: percent(one) })) }));
    plot(part, 'line', tiles.map(String), lines.filter(({ data }) => data.length > 1), 'tile', '% of all warps');
    return `Blocks on compute capability ${chip}: ${fit}, limited by ${text(limiters)}`;
  });
  return { show: ask, stop };
}

export function code(part, { variants }) {
  const { source } = $('form', part);
  const choices = variants.flatMap((one) => one.sources.map((file) => ({ one, file })));
  const first = choices.find(({ one }) => one.backend === 'cuda' && one.tile);
  source.append(...choices.map((choice) => make('option', { selected: choice === first },
    [choice.one.backend, choice.one.op, choice.one.name, choice.file].join('/'))));
  const { ask, stop } = asker($('form', part), async (post, signal) => {
    const { one, file } = choices[source.selectedIndex];
    const reply = await call(`v1/variants/${one.name}/source?backend=${one.backend}&op=${one.op}&file=${file}`, { signal });
    const lines = await reply.text();
    $('code', part).textContent = lines;
    $('span', part).textContent = lines.trimEnd().split('\n').map((_, line) => line + 1).join('\n');
    return one.summary + (one.available ? '' : ` (here unavailable: ${one.unavailable_because})`);
  });
  return { show: ask, stop };
}
