// What the views share: requests to this server, the API key, the state in the address, and small parts of a page.

export const $ = (selector, from = document) => from.querySelector(selector);

// Makes an element: make('td', { class: 'number', onclick: f }, 'text', node, …). The page's policy forbids the
// attribute `style`: set node.style.width and the like.
export function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

export const code = (text) => make('code', {}, text);

// Turns a text with `code`, *emphasis*, **strong** and [links](address) into nodes. link(address, node) makes a link.
export function rich(text = '', link) {
  const mark = (part) => {
    const [, label, address] = part.match(/^\[(.*)\]\((.*)\)$/) || [];
    if (address) return link(address, rich(label));
    if (part[0] === '`') return code(part.slice(1, -1));
    return part[1] === '*' ? make('strong', {}, rich(part.slice(2, -2), link)) : make('em', {}, part.slice(1, -1));
  };
  const parts = text.split(/(`[^`]+`|\*\*.+?\*\*|\*[^*\s][^*]*\*|\[[^\]]+\]\([^)]+\))/);
  return make('span', {}, ...parts.map((part, index) => (index % 2 ? mark(part) : part)));
}

// An error that the server reports (RFC 9457), or a network error, which has status 0.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `the server answered with ${status}`);
    Object.assign(this, { status, code: body.code, title: body.title, field: body.field });
  }
}

export function problemBox(error) {
  const title = error.title || (error instanceof Problem ? 'Error' : 'The page failed');
  return make('div', { class: 'problem', role: 'alert' }, make('strong', {}, title), make('div', {}, error.message));
}

// Sends a request to a path such as 'v1/matmul'. Returns the Response if it is a success, or if `any` is true.
// Otherwise throws a Problem. If the server wants an API key and `quiet` is false, one dialog asks for a key on behalf
// of all waiting requests.
export async function call(path, { method = 'GET', body, type, accept, signal, quiet = false, any = false } = {}) {
  for (;;) {
    const headers = {};
    const key = sessionStorage.getItem('matmuld-key');
    if (key) headers.Authorization = 'Bearer ' + key;
    if (type) headers['Content-Type'] = type;
    if (accept) headers.Accept = accept;
    let response;
    try {
      // A stored matrix has the same ETag in all formats, so a cache could return a wrong format.
      response = await fetch(path, { method, headers, body, signal, cache: 'no-store' });
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new Problem(0, { title: 'No connection', detail: 'The server did not answer; try again.' });
    }
    if (response.status === 401 && !quiet && await askKey(key)) continue;
    if (response.ok || any) return response;
    const text = await response.text();
    let problem = {};
    try { problem = JSON.parse(text); } catch { /* not JSON, perhaps a proxy's page */ }
    throw new Problem(response.status, problem);
  }
}

export async function callJson(path, body, options = {}) {
  if (body !== undefined) options = { method: 'POST', type: 'application/json', body: JSON.stringify(body), ...options };
  return (await call(path, options)).json();
}

// Asks the user for an API key, which sessionStorage keeps in this tab. Resolves to true if there is a new key to try.
let asking = null;

function askKey(refused) {
  const kept = sessionStorage.getItem('matmuld-key');
  if (kept !== refused) return true; // the user has given a key to another request
  asking ||= new Promise((resolve) => {
    const input = make('input', { type: 'password', autocomplete: 'off', id: 'key-value', pattern: '[ -~]*',
      title: 'ASCII characters alone: others cannot be sent in a header' });
    const dialog = make('dialog', { 'aria-labelledby': 'key-title' },
      make('form', { method: 'dialog' },
        make('h2', { id: 'key-title' }, 'API key'),
        make('p', {}, refused ? 'The server did not accept this key.' : 'This server may need an API key.',
          ' The key stays in this tab. Leave the field empty to forget it.'),
        make('label', { for: 'key-value' }, 'Key', input),
        make('div', { class: 'row' },
          make('button', { class: 'main', value: 'use' }, 'Use'),
          make('button', { value: 'cancel', formnovalidate: true }, 'Cancel'))));
    dialog.addEventListener('close', () => {
      const used = dialog.returnValue === 'use';
      if (used && input.value.trim()) sessionStorage.setItem('matmuld-key', input.value.trim());
      else if (used) sessionStorage.removeItem('matmuld-key');
      dialog.remove();
      asking = null;
      resolve(used);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}

export function wireKey() {
  $('#key').addEventListener('click', () => askKey(sessionStorage.getItem('matmuld-key')));
}

// Reads the state in the address: "#try?a=1,2" is { view: 'try', parameters }. Browsers never send it to the server.
export function state() {
  const [view, query] = location.hash.slice(1).split('?');
  return { view, parameters: new URLSearchParams(query) };
}

// Puts the state of a view into the address, without a new entry in the browser's history. Leaves out values that are
// null, undefined or empty.
export function remember(view, values) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value != null && value !== '') parameters.set(name, value);
  const query = parameters.toString().replace(/%(2C|3A|3B|28|29)/g, decodeURIComponent); // keeps lists readable
  history.replaceState(null, '', '#' + view + (query ? '?' + query : ''));
}

// Makes a table in a box that scrolls on narrow screens. columns: [{ title, number }]; cells are texts or nodes.
export function table(caption, columns, rows) {
  const cell = (content, index) => make('td',
    { 'data-title': columns[index].title, class: columns[index].number ? 'number' : null }, content ?? '');
  return make('div', { class: 'scroll', tabindex: '0', role: caption ? 'region' : null, 'aria-label': caption || null }, make('table', {},
    caption ? make('caption', {}, caption) : '',
    make('thead', {}, make('tr', {}, ...columns.map((column) =>
      make('th', { scope: 'col', class: column.number ? 'number' : null }, column.title)))),
    make('tbody', {}, ...rows.map((row) => make('tr', {}, ...row.map(cell))))));
}

// Makes a node that counts seconds, such as "12 s". It is hidden from screen readers, which would read each second.
export function elapsed() {
  const begun = Date.now(), node = make('span', { 'aria-hidden': 'true' });
  const timer = setInterval(() => {
    node.textContent = Math.round((Date.now() - begun) / 1000) + ' s';
    if (!node.isConnected) clearInterval(timer);
  }, 1000);
  return node;
}

export const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`; // quotes a text for a shell

// Writes a curl command. Leaves out empty options.
export function curl(path, ...options) {
  const key = sessionStorage.getItem('matmuld-key') && '-H "Authorization: Bearer $MATMULD_API_KEY"';
  return ['curl -sS --fail-with-body ' + quote(new URL(path, document.baseURI).href), key, ...options].filter(Boolean).join(' \\\n  ');
}

export function copied(text, what) {
  const button = make('button', { type: 'button', 'aria-label': 'Copy ' + what, onclick: async () => {
    await copy(text);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  } }, 'Copy');
  return make('div', { class: 'copied' }, make('pre', { tabindex: '0', 'aria-label': what }, make('code', {}, text)), button);
}

// Browsers offer navigator.clipboard only for https and localhost.
export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = make('textarea', {}, text), focused = document.activeElement;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
  focused.focus();
}

let chartLibrary = null;

function loadCharts() {
  chartLibrary ||= new Promise((resolve) => {
    document.head.append(make('script', { src: 'page/chart.js', onload: () => resolve(window.Chart), onerror: () => resolve(null) }));
  });
  return chartLibrary;
}

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// Draws a chart into an element, in place of an earlier chart. The caller also shows a table, because a server without
// Chart.js draws no chart. configure() returns the configuration, and runs again when the colour scheme changes. `label`
// describes the chart in a sentence. `keep`: gives new data to the earlier chart instead.
const charts = new Map();

export async function chart(host, label, configure, keep = false) {
  const Chart = await loadCharts();
  host.hidden = !Chart;
  if (!Chart) return;
  const held = charts.get(host);
  if (keep && held) {
    held.configure = configure;
    held.drawn.data = configure().data;
    return held.drawn.update();
  }
  held?.drawn.destroy();
  const canvas = make('canvas', { role: 'img', 'aria-label': label });
  host.classList.add('chart');
  host.replaceChildren(canvas);
  Chart.defaults.color = colour('ink');
  Chart.defaults.borderColor = colour('line');
  Chart.defaults.font.family = 'system-ui, sans-serif';
  const configuration = configure();
  configuration.options = { animation: false, maintainAspectRatio: false, ...configuration.options };
  charts.set(host, { drawn: new Chart(canvas, configuration), label, configure });
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const [host, { label, configure }] of charts) chart(host, label, configure);
});

export function number(value, digits = 3) {
  return value == null ? '–' : value.toLocaleString('en', { maximumSignificantDigits: digits });
}

export function byteText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; bytes >= 1024 && unit < units.length - 1; unit++) bytes /= 1024;
  return number(bytes) + ' ' + units[unit];
}
