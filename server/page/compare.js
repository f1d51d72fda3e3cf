// The view Compare: questions about kernels, one below the other. A part is built once by its function (part, server),
// which returns show(control), called when that control or the address has changed, and stop().
import { $, callJson, make, problemBox, remember } from './base.js';
import { roof, speed } from './compare_speed.js';
import { banks } from './compare_banks.js';
import { blocks, code } from './compare_kernels.js';

const builders = { speed, roof, banks, blocks, code };
let parts = null;
let looked = null; // the part that is looked at

function keep() {
  const state = { part: looked };
  for (const form of document.querySelectorAll('#compare form'))
    for (const [name, value] of new FormData(form)) state[name] = state[name] ? state[name] + ',' + value : value;
  if (state.pattern !== 'offsets') delete state.offsets;
  remember('compare', state);
}

function fill(parameters) {
  looked = parameters.get('part');
  for (const form of document.querySelectorAll('#compare form')) {
    form.reset();
    if (![...form.elements].some(({ name }) => parameters.has(name))) continue;
    for (const control of form.elements) {
      const value = parameters.get(control.name);
      if (control.type === 'checkbox') control.checked = value?.split(',').includes(control.value);
      else if (value !== null) control.value = value;
      if (control.selectedIndex < 0) control.selectedIndex = 0; // this server has no such choice
    }
  }
}

function look() {
  if (!builders[looked]) return;
  $('#' + looked).scrollIntoView();
  $('#' + looked).focus({ preventScroll: true });
}

function build(section, server) {
  parts = {};
  for (const [name, builder] of Object.entries(builders)) {
    const part = $('#' + name);
    const title = $('h3', part).textContent;
    part.tabIndex = -1;
    part.ariaLabel = title;
    parts[name] = builder(part, server);
    const follow = (event) => {
      event.preventDefault(); // the rest of the state stays
      looked = name;
      keep();
      look();
    };
    $('nav', section).append(make('a', { href: '#compare?part=' + name, onclick: follow }, title));
    part.addEventListener('input', ({ target }) => {
      looked = name;
      parts[name].show(target);
      keep();
    });
  }
  $('div', section).hidden = false;
}

// quiet: nobody has asked for anything yet, so no dialog asks for the key.
export async function open(section, parameters, quiet = true) {
  if (parts && !parameters.size) return keep(); // back from another view
  const hint = $('.hint', section);
  try {
    const [{ variants }, { devices }, { components }] = parts ? [{}, {}, {}] : await Promise.all(
      ['v1/variants', 'v1/devices', 'openapi.json'].map((path) => callJson(path, undefined, { quiet })));
    if (!parts) build(section, { variants, devices, names: (schema) => components.schemas[schema].enum });
    hint.replaceChildren();
  } catch (error) {
    const key = error.status === 401;
    return hint.replaceChildren(key ? 'This server needs an API key. ' : problemBox(error),
      make('button', { onclick: () => open(section, parameters, false) }, key ? 'Enter it' : 'Try again'));
  }
  fill(parameters);
  await Promise.all(Object.values(parts).map((part) => part.show()));
  look();
}

export function close() {
  for (const part of Object.values(parts || {})) part.stop();
}
