// Shows the view that the address names: #learn, #try, #compare or #operate. The view's state follows a question mark.
import { $, state, wireKey } from './base.js';

const views = { learn: () => import('./learn.js'), try: () => import('./try.js'), compare: () => import('./compare.js'), operate: () => import('./operate.js') };
let shown = null; // name and module of the view on the page
let wanted; // name of the view that is loading or shown

async function show() {
  const { view, parameters } = state();
  const isView = Object.hasOwn(views, view);
  if (!isView && shown) return;
  const name = wanted = isView ? view : 'try';
  if (shown && shown.name !== name) {
    shown.module.close();
    $('#' + shown.name).hidden = true;
  }
  const module = await views[name]().catch(() => null);
  if (wanted !== name) return; // another view was chosen while this one loaded
  $('#failed').hidden = Boolean(module);
  if (!module) return;
  shown = { name, module };
  for (const link of document.querySelectorAll('header nav a')) {
    if (link.hash === '#' + name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = 'matmuld: ' + name;
  const section = $('#' + name);
  section.hidden = false;
  module.open(section, parameters);
}

wireKey();
$('.skip').onclick = () => {
  $('#main').focus();
  return false; // keeps the view's state in the address
};
addEventListener('hashchange', show);
show();
