// The view Compare: questions about kernels, one below the other. Each part is built once by a function, which returns
// show(control), called when that control or the address has changed, and stop().
import { $, callJson, make, problemBox, remember } from './base.js';
import { speed } from './compare_speed.js';
import { banks } from './compare_banks.js';
import { blocks, code } from './compare_kernels.js';

const builders = { speed, banks, blocks, code };
const parts = [];
let built = false;
let looked = null; // the part that is looked at
const controls = () => document.querySelectorAll('#compare [name]');

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
    if (control.selectedIndex < 0) control.selectedIndex = 0; // this server has no such choice
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

// quiet: nobody has asked for anything yet, so no dialog asks for the key.
export async function open(section, parameters, quiet = true) {
  const hint = $('.hint', section);
  const again = built, focused = document.activeElement;
  try {
    const { variants } = built || await callJson('v1/variants', undefined, { quiet });
    if (!built) build(section, variants);
    built = true;
  } catch (error) {
    const key = error.status === 401;
    return hint.replaceChildren(key ? 'This server needs an API key. ' : problemBox(error),
      make('button', { onclick: () => open(section, parameters, false) }, key ? 'Enter the key' : 'Try again'));
  }
  hint.replaceChildren();
  fill(parameters);
  for (const part of parts) await part.show(); // in turn: a GPU measures strides, and then takes nothing else
  if (section.hidden) return; // another view has come meanwhile
  if (again || parameters.size) keep();
  if (document.activeElement !== focused) return; // the user has gone on meanwhile
  const part = looked && $('section.' + CSS.escape(looked), section);
  part?.scrollIntoView();
  part?.focus({ preventScroll: true });
}

export function close() {
  for (const part of parts) part.stop();
}
