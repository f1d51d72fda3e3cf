// The view Compare: questions about kernels, one below the other. A function builds each part once, and returns
// show(control) and stop(). show() is called when that control or the address has changed.
import { $, call, make, remember } from './base.js';
import { asker, listing, options, variantList } from './part.js';
import { speed } from './compare_speed.js';

const builders = { speed, code };
const parts = [];
let built = false;
let looked = null; // the part that the user changed last
const controls = () => document.querySelectorAll('#compare [name]');

// Shows the source of a variant, one file at a time.
function code(part, variants) {
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

function keep() {
  const state = { part: looked };
  for (const { name, type, checked, value } of controls())
    state[name] = type !== 'checkbox' ? value : [state[name], checked && value].filter(Boolean).join() || 'none';
  remember('compare', state);
}

function fill(parameters) {
  looked = parameters.get('part');
  for (const control of controls()) {
    const value = parameters.get(control.name);
    if (value === null) continue;
    if (control.type === 'checkbox') control.checked = value.split(',').includes(control.value);
    else control.value = value;
    if (control.selectedIndex < 0) control.selectedIndex = 0; // this server lacks the choice
    control.dispatchEvent(new Event('input')); // choices of other controls may depend on it
  }
}

function build(section, variants) {
  for (const part of section.querySelectorAll('section')) {
    const name = part.className;
    const title = $('h3', part).textContent;
    part.setAttribute('aria-label', title);
    part.tabIndex = -1;
    $('nav', section).append(make('a', { href: '#compare?part=' + name }, title));
    if (!builders[name]) continue; // `speed` fills the roofline
    const { show, stop } = builders[name](part, variants);
    parts.push({ show, stop });
    part.addEventListener('input', ({ target }) => {
      looked = name;
      show(target);
      keep();
    });
  }
  $('.parts', section).hidden = false;
}

// If `quiet`, no dialog asks for the API key, because the user has not asked for anything yet.
export async function open(section, parameters, quiet = true) {
  const again = built, focused = document.activeElement;
  const variants = await variantList(section, quiet, () => open(section, parameters, false));
  if (!variants) return;
  if (!built) build(section, variants);
  built = true;
  fill(parameters);
  for (const part of parts) await part.show();
  if (section.hidden) return; // another view was opened meanwhile
  if (again || parameters.size) keep();
  if (document.activeElement !== focused) return; // the user has moved on meanwhile
  const part = looked && $('section.' + CSS.escape(looked), section);
  part?.scrollIntoView();
  part?.focus({ preventScroll: true });
}

export function close() {
  for (const part of parts) part.stop();
}
