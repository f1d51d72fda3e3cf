// The source of each variant, a file at a time.
import { $, call, make } from './base.js';
import { asker, listing, options } from './part.js';

export function code(part, variants) {
  const form = $('form', part), { source, file } = form;
  const choices = variants.filter((one) => one.sources?.length);
  const first = choices.find(({ backend, tile }) => backend === 'cuda' && tile);
  source.append(...choices.map((one) => make('option', { selected: one === first },
    `${one.backend}:${one.name}` + (one.op === 'matmul' ? '' : `, ${one.op}`))));
  function list() {
    const { sources } = choices[source.selectedIndex];
    file.replaceChildren();
    options(file, sources.map((path) => path.split('/').pop()));
    file.size = Math.min(sources.length, 6);
  }
  source.addEventListener('input', list);
  list();
  return asker(form, async (post, signal) => {
    const { name, backend, op, sources, summary, unavailable_because: why } = choices[source.selectedIndex];
    const path = sources[Math.max(0, file.selectedIndex)];
    const reply = await call(`v1/variants/${name}/source?backend=${backend}&op=${op}&file=${path}`, { signal });
    $('pre', part).replaceChildren(listing(await reply.text()));
    return summary + (why ? ` (here unavailable: ${why})` : '');
  });
}
