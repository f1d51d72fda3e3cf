// The view Compare: questions about kernels, one below the other. A part is built once by its function (part, server),
// which returns show(control), called when that control or the address has changed, and stop().
import { $, callJson, make, problemBox, remember } from './base.js';
import { roof, speed } from './compare_speed.js';
import { banks } from './compare_banks.js';
import { blocks, code } from './compare_kernels.js';

let parts = [];
let built = null; // a promise: the parts are built once
let looked = null; // the part that is looked at

// All named controls are kept in the address, and filled from it.
function keep() {
  const state = { part: looked };
  for (const { name, type, checked, value } of document.querySelectorAll('#compare [name]')) {
    if (type !== 'checkbox') state[name] = value;
    else state[name] = [state[name], checked && value].filter(Boolean).join() || 'none';
  }
  remember('compare', state);
}

function fill(parameters) {
  looked = parameters.get('part');
  for (const control of document.querySelectorAll('#compare [name]')) {
    const value = parameters.get(control.name);
    if (value === null) continue;
    if (control.type === 'checkbox') control.checked = value.split(',').includes(control.value);
    else control.value = value;
    if (control.selectedIndex < 0) control.selectedIndex = 0; // this server has no such choice
  }
}

async function build(section, quiet) {
  const [{ variants }, { devices }] = await Promise.all(
    ['v1/variants', 'v1/devices'].map((path) => callJson(path, undefined, { quiet })));
  parts = Object.entries({ speed, roof, banks, blocks, code }).map(([name, builder]) => {
    const part = $('.' + name, section);
    const title = $('h3', part);
    const { show, stop } = builder(part, { variants, devices });
    title.id = 'compare-' + name;
    part.setAttribute('aria-labelledby', title.id);
    $('nav', section).append(make('a', { href: '#compare?part=' + name }, title.textContent));
    part.addEventListener('input', ({ target }) => {
      looked = name;
      show(target);
      keep();
    });
    return { show, stop };
  });
  $('.parts', section).hidden = false;
}

// quiet: nobody has asked for anything yet, so no dialog asks for the key.
export async function open(section, parameters, quiet = true) {
  const hint = $('.hint', section);
  try {
    await (built ||= build(section, quiet));
  } catch (error) {
    built = null;
    return hint.replaceChildren(error.status === 401 ? 'This server needs an API key. ' : problemBox(error),
      make('button', { onclick: () => open(section, parameters, false) }, 'Try again'));
  }
  hint.replaceChildren();
  fill(parameters);
  await Promise.all(parts.map((part) => part.show()));
  if (parameters.size) keep();
  if (looked) $('.' + looked, section)?.scrollIntoView();
}

export function close() {
  for (const part of parts) part.stop();
}
