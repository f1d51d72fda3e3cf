// The view Try: two operands, their product, where its time went, and the request for curl and Python. The form is the
// state: its fields have the names of the API's parameters. Elements stay texts, because JavaScript would round 64-bit
// integers.
import { $, call, callJson, copied, copy, curl, elapsed, make, problemBox, quote, remember, table } from './base.js';

const SHOWN = 16; // the most rows and columns of a matrix on the page
const TEXT_MAX = 4000; // most characters of typed matrices in a link or a line of code
const HERE = new URL('v1/matmul', document.baseURI).href;

let form, variants = [], stored = []; // what the server lists, once loaded
let running, whole, timed; // AbortController of the last request; the request for all of C; the browser's times
const both = [{ name: 'a', example: '1,2;3,4' }, { name: 'b', example: '5,6;7,8' }]; // the operands

const part = (name) => $('#try-' + name);
const field = (name) => form.elements.namedItem(name);
const say = (...texts) => part('note').replaceChildren(...texts);

// The source of an operand: '' if typed, '@NAME' if a file, otherwise as in the API.
const from = (x) => x.from.value;
const isFile = (x) => from(x)[0] === '@';
const isMade = (x) => !isFile(x) && from(x).endsWith(')');
const isForm = () => both.some(isFile);
const cellsOf = (text) => text.split(';').map((row) => row.split(',').map((one) => one.trim()));
const terms = () => ['c', 'bias'].map((name) => ({ name, text: field(name).value })).filter(({ text }) => text)
  .map(({ name, text }) => ({ name, cells: cellsOf(text) }));
const typed = () => [...both.filter((x) => !from(x)), ...terms()];
const isLong = () => typed().map((x) => x.cells).join().length > TEXT_MAX;
const known = (x) => isFile(x) ? x : stored.find(({ name }) => name === from(x)) || {};

export function open(section, parameters) {
  if (form && !parameters.size) return part('out').hidden ? multiply(true) : keep(); // back from another view
  if (!form) build(section);
  form.reset();
  for (const x of both) {
    const text = parameters.get(x.name) || x.example;
    setCells(x, text === '?' ? [['', ''], ['', '']] : cellsOf(text));
    x.file = null;
  }
  for (const [name, value] of parameters) {
    const input = field(name);
    if (input?.options) choose(input, value);
    else if (input?.type === 'checkbox') input.checked = value === 'true';
    else if (input) input.value = value;
  }
  part('more').open = [...part('more').querySelectorAll('input, select')].some(({ value }) => value);
  update();
  if (both.every((x) => isFile(x) ? x.file : from(x) || /[^,]/.test(x.cells))) return multiply(true);
  say('The link holds no files and no long matrices: add what is missing.');
  loadLists();
}

export function close() {
  running?.abort();
}

function keep() {
  const matrices = typed().map((x) => [x.name, isLong() ? '?' : x.cells.join(';')]);
  remember('try', Object.fromEntries([...matrices, ...new FormData(form)]));
}

// The dimensions of op(X), if they are known.
function shapeOf(x) {
  if (isMade(x)) return [field('m').value, field('n').value];
  const shape = from(x) ? known(x).shape || [] : [x.cells.length, x.cells[0].length];
  return shape[1] && x.transpose.checked ? [...shape.slice(0, -2), shape.at(-1), shape.at(-2)] : shape;
}

// The request's parameters but typed matrices, as pairs of texts. What the page does not show of C is not transferred.
function parameters(all) {
  const list = [...new FormData(form)].filter(([name, value]) => value && value[0] !== '@' && name !== 'c' && name !== 'bias');
  const [a, b] = both.map(shapeOf);
  if (all) return list;
  if (a[2] || b[2]) return [...list, ['reply', 'none']];
  if (a[1] && a[0] > SHOWN) list.push([b.length === 1 ? 'cols' : 'rows', '0:' + SHOWN]); // a vector has only columns
  if (b[1] > SHOWN) list.push(['cols', '0:' + SHOWN]);
  return list;
}

const json = (text) => /^(-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?|true|false)$/.test(text) ? text : JSON.stringify(text);
const rows = ({ name, cells }) => `[${name === 'bias' ? cells.flat().map(json) : cells.map((row) => `[${row.map(json)}]`)}]`;

function body(list) {
  if (isForm()) {
    const data = new FormData();
    for (const x of both.filter(isFile)) data.append(x.name, x.file);
    for (const x of typed()) data.append(x.name, new Blob([x.cells.join('\n')], { type: 'text/csv' }));
    for (const pair of list) data.append(...pair);
    return { body: data };
  }
  const members = typed().map((x) => `"${x.name}": ${rows(x)}`);
  for (const [name, value] of list) {
    const [, operand] = /^(.+)_from$/.exec(name) || [];
    members.push(operand ? `"${operand}": {"from": ${JSON.stringify(value)}}` : `"${name}": ${json(value)}`);
  }
  return { type: 'application/json', body: `{${members.join(', ')}}` };
}

// If `quiet`, no dialog asks for a key, because the page has just been opened.
async function multiply(quiet) {
  running?.abort();
  const { signal } = running = new AbortController();
  showProblem();
  say('Multiplying… ', elapsed());
  try {
    if (both.some((x) => from(x) && !isMade(x) && !isFile(x))) await loadLists();
    signal.throwIfAborted();
    keep();
    const begun = performance.now(), shapes = both.map(shapeOf);
    const request = { method: 'POST', accept: 'application/json', quiet, signal, ...body(parameters()) };
    const all = { method: 'POST', accept: 'application/x-npy', ...body(parameters(true)) };
    const response = await call('v1/matmul', request);
    const reply = exact(await response.text());
    whole = all;
    drawProduct(reply, ...shapes);
    performance.mark('try-product');
    say('Done.');
    const isTimed = () => timed?.startTime >= begun;
    for (let tries = 0; tries < 50 && !isTimed(); tries++) await new Promise((done) => setTimeout(done, 10));
    if (!signal.aborted) drawTimes(response.headers.get('Server-Timing'), isTimed() ? timed : {}, reply);
  } catch (error) {
    if (error.name === 'AbortError') return running.signal === signal && say('');
    const isHint = quiet && error.status === 401;
    part('out').hidden = true;
    say(isHint ? 'This server needs an API key: press Multiply.' : '');
    if (!isHint) showProblem(error);
  }
  if (!variants.length) loadLists();
}

// Parses JSON, with its numbers as texts.
function exact(text) {
  return JSON.parse(text.replace(/"(\\.|[^"\\])*"|-?\d[\d.eE+-]*/g, (one) => one[0] === '"' ? one : `"${one}"`));
}

// Shows an error and marks the field that it names. Without an error, removes both.
function showProblem(error) {
  $('.bad', form)?.classList.remove('bad');
  part('problem').replaceChildren(...error ? [problemBox(error)] : []);
  const name = (error?.field || '').replace('.', '_');
  (field(name) || field(name.replace(/_.*/, '')))?.classList.add('bad');
}

async function loadLists() {
  const [known, list] = await Promise.all(['v1/variants', 'v1/matrices'].map((path) =>
    callJson(path, undefined, { quiet: true }).catch(() => null)));
  variants = (known?.variants || []).filter((row) => row.op === 'matmul' && row.available);
  stored = list?.matrices || [];
  update();
}

async function takeFile(x, file) {
  const option = $('[value^="@"]', x.panel);
  option.value = '@' + file.name;
  option.selected = true;
  Object.assign(x, { file, shape: null, dtype: '', delimiter: '' });
  if (/\.csv$/i.test(file.name)) {
    const lines = (await file.text()).trimEnd().split('\n');
    if (x.file !== file) return; // another file was chosen meanwhile
    x.delimiter = lines[0].includes(';') ? ';' : ',';
    x.shape = [lines.length, lines[0].split(x.delimiter).length];
  } else {
    const head = await file.slice(0, 1024).text();
    if (x.file !== file) return;
    const [, kind, bytes] = /'descr': '.(\w)(\d)/.exec(head) || [];
    x.shape = /'shape': \((.*?),?\)/.exec(head)?.[1].split(',').map(Number);
    const float = bytes > 1 ? 'float' + bytes * 8 : 'float8_e5m2';
    x.dtype = { f: float, i: 'int' + bytes * 8, u: 'uint8', b: 'bool' }[kind] || '';
  }
  const known = x.shape ? `${x.shape.join('×')} ${x.dtype}` : 'not a .npy file';
  $('.file p', x.panel).textContent = `${file.name}: ${known}`;
  changed();
}

function build(section) {
  form = part('form');
  for (const x of both) {
    x.panel = field(x.name);
    x.panel.append($('template', section).content.cloneNode(true));
    x.from = $('select', x.panel);
    x.from.name = x.name + '_from';
    x.transpose = $('[value=true]', x.panel);
    x.transpose.name = 'transpose_' + x.name;
  }
  new PerformanceObserver((list) => { // the browser's own list of entries may be full
    timed = list.getEntriesByName(HERE).filter((one) => one.responseStatus !== 401).at(-1) || timed;
  }).observe({ type: 'resource' });
  const operandAt = (element) => both.find((x) => x.panel.contains(element));
  form.oninput = ({ target }) => {
    const x = operandAt(target), { at } = target.dataset;
    if (target.type === 'file') return target.files[0] && takeFile(x, target.files[0]).catch(showProblem);
    if (at) x.cells[at.split(',')[0]][at.split(',')[1]] = target.value.trim();
    if (target.name === 'variant') field('tile').value = '';
    changed();
  };
  form.onclick = ({ target }) => {
    const x = operandAt(target);
    if (!x || target.tagName !== 'BUTTON') return;
    const [down, right] = target.value.split(',');
    const rows = x.cells.length + +down, columns = x.cells[0].length + +right;
    if (!rows || !columns) return;
    const row = (_, at) => Array.from({ length: columns }, (_, column) => x.cells[at]?.[column] ?? '0');
    setCells(x, Array.from({ length: rows }, row));
    changed();
  };
  form.onpaste = ({ target, clipboardData }) => {
    const text = clipboardData.getData('text').replace(/^ +|\s+$/g, '');
    const separator = ['\t', ';', ',', ' ', '\n'].find((one) => text.includes(one));
    if (!target.dataset.at || !separator) return;
    const x = operandAt(target);
    const between = separator === ' ' ? / +/ : separator;
    setCells(x, text.split(/ *\r?\n */).map((row) => row.split(between).map((one) => one.trim())));
    $('[data-at]', x.panel).focus();
    changed();
    return false;
  };
  form.onkeydown = move;
  section.ondragover = () => false;
  section.ondrop = ({ target, dataTransfer: { files } }) => {
    if (operandAt(target) && files[0]) takeFile(operandAt(target), files[0]).catch(showProblem);
    return false;
  };
  form.onsubmit = () => {
    multiply();
    return false;
  };
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !section.hidden) form.requestSubmit();
  });
  part('link').onclick = () => copy(location.href).then(() =>
    say(isForm() || isLong() ? 'Copied. The link does not hold files and long matrices.' : 'Copied.'));
  part('download').onclick = () => {
    say('Downloading… ', elapsed());
    call('v1/matmul', whole).then(async (response) => {
      const href = URL.createObjectURL(await response.blob());
      make('a', { href, download: 'c.npy' }).click();
      setTimeout(URL.revokeObjectURL, 10000, href);
    }).catch(showProblem).finally(() => say(''));
  };
}

// Arrow keys and Enter move between cells. Left and right do so only at this end of the text, or if all is selected.
function move({ key, target, ctrlKey, metaKey, shiftKey }) {
  const { selectionStart, selectionEnd, value, dataset: { at } } = target;
  if (!at || ctrlKey || metaKey || shiftKey) return;
  const all = selectionEnd - selectionStart === value.length;
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], Enter: [1, 0], ArrowLeft: (all || selectionEnd === 0) && [0, -1],
    ArrowRight: (all || selectionStart === value.length) && [0, 1] }[key];
  if (!step) return;
  $(`[data-at="${at.split(',').map((one, axis) => +one + step[axis])}"]`, target.closest('table'))?.select();
  return false;
}

// Makes all rows equally long, and draws the first rows.
function setCells(x, rows) {
  const length = Math.max(...rows.map((row) => row.length)), name = x.name.toUpperCase();
  x.cells = rows.map((row) => [...row, ...Array(length - row.length).fill('')]);
  const cell = (value, row, column) => make('input', { value, autocomplete: 'off', 'data-at': `${row},${column}`,
    'aria-label': `${name}, row ${row + 1}, column ${column + 1}` });
  const shown = corner(x.cells).map((row, down) => row.map((value, at) => cell(value, down, at)));
  $('.typed div', x.panel).replaceWith(matrix(`${name}, ${sized([rows.length, length])}`, shown));
}

const sized = (shape) => (shape.join('×') || 'a number') +
  (shape.some((length) => length > SHOWN) ? `, at most ${SHOWN}×${SHOWN} shown` : '');
const corner = (rows) => rows.slice(0, SHOWN).map((row) => row.slice(0, SHOWN));
const matrix = (caption, rows) => table(caption, (rows[0] || []).map(() => ({ title: '', number: true })), rows);

function changed() {
  update();
  keep();
  say('Changed: press Multiply.');
}

// Shows the fields and choices that fit the choices already made.
function update() {
  const show = (name, shown) => { field(name).parentNode.hidden = field(name).disabled = !shown; };
  for (const x of both) {
    for (const { name, shape, dtype } of stored) {
      offer(x.from, name).textContent = `stored: ${name}, ${shape.join('×')} ${dtype}`;
    }
    $('.typed', x.panel).hidden = from(x);
    $('.file', x.panel).hidden = !isFile(x);
    $('.file input', x.panel).required = isFile(x) && !x.file;
  }
  part('sources').replaceChildren(...['uniform(3)', 'identity()', ...stored.map(({ name }) => name)].map((value) => make('option', { value })));
  const [a, b] = both.map(isMade);
  show('m', a);
  show('k', a && b);
  show('n', b);
  const backends = [...new Set(variants.map((row) => row.backend))], dtype = field('dtype').value;
  const backend = field('backend').value || (backends.includes('cuda') ? 'cuda' : 'cpu'); // like the server's `auto`
  const rows = variants.filter((row) => row.backend === backend && (!dtype || row.dtypes.includes(dtype)));
  const chosen = rows.find((row) => row.name === (field('variant').value || 'auto'));
  fill('dtype', new Set(variants.flatMap((row) => row.dtypes)));
  fill('backend', backends);
  fill('variant', rows.map((row) => row.name));
  fill('tile', chosen?.tiles || []);
  show('tile', chosen?.tiles || field('tile').value);
  part('summary').textContent = chosen ? `${chosen.name}: ${chosen.summary}` : '';
  drawCode();
}

// Lists choices, `auto` first. The chosen value stays even if it is not listed, because a link may come from another
// server.
function fill(name, values) {
  const select = field(name), { value } = select;
  select.replaceChildren(new Option('auto', ''));
  for (const one of values) {
    const isWrong = variants.some((row) => row.name === one && row.wrong_on_purpose);
    if (one !== 'auto') offer(select, `${one}`, one + (isWrong ? ' (wrong on purpose)' : ''));
  }
  choose(select, value, variants.length ? `${value} (not here)` : value);
}

function choose(select, value, title = value) {
  offer(select, value, title);
  select.value = value;
}

function offer(select, value, title) {
  const option = [...select.options].find((one) => one.value === value) || new Option(title, value);
  if (!option.parentNode) select.append(option);
  return option;
}

function drawProduct(reply, a, b) {
  let { c, shape, dtype, verify } = reply;
  const size = c === undefined ? shape : [...a.slice(-2, -1), ...b.length > 1 ? b.slice(-1) : []];
  if (c !== undefined) for (let depth = shape.length; depth < 2; depth++) c = [c];
  part('c').replaceChildren(matrix(`C, ${sized(size)}, ${dtype}${c ? '' : ': download it to see it'}`, corner(c || [])));
  const facts = ['variant', 'backend', 'device', 'path'].filter((name) => reply[name])
    .map((name) => `${name} ${reply[name]}`);
  if (verify) facts.push('verify: ' + Object.entries(verify).map((pair) => pair.join(' ')).join(', '));
  part('facts').textContent = facts.join(' · ');
  part('facts').className = verify?.passed === false ? 'problem' : 'note';
  part('out').hidden = false;
}

// Browser and server have different clocks, so the server's time is drawn in the middle of the browser's wait for the
// first byte.
function drawTimes(header, { startTime = 0, requestStart = 0, responseStart = 0, responseEnd = 0 }, { batched }) {
  if (!header) return part('times').replaceChildren('The reply has no Server-Timing: a proxy may have removed it.');
  const pairs = [...header.matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, ms]) => [name, +ms]);
  const { total, ...spans } = Object.fromEntries(pairs);
  spans.other = Math.max(0, total - Object.values(spans).reduce((sum, ms) => sum + ms));
  const sent = requestStart - startTime, wait = Math.max(total, responseStart - requestStart);
  const read = responseEnd - responseStart, begin = sent + (wait - total) / 2;
  let at = begin;
  const inner = Object.entries(spans).map(([name, ms]) => {
    const start = Math.max(begin, Math.min(at, begin + total - ms)); // a shared launch may be longer than the total
    at = start + ms;
    return ['server: ' + name, ms, start, 'span'];
  });
  const shared = batched > 1 ? `; ${batched} requests shared this upload and kernel` : '';
  part('times').replaceChildren(table('In order' + shared,
    [{ title: 'Span' }, { title: 'ms', number: true }, { title: 'When' }], [
      ['browser: before sending', sent, 0], ['browser: sent to first byte', wait, sent],
      ['server: total', total, begin, 'server'], ...inner,
      ['network and browser', wait - total], ['browser: first to last byte', read, sent + wait],
    ].map(([name, ms, start, kind]) => {
      const bar = make('i', { class: kind, hidden: start === undefined });
      bar.style.left = start / (sent + wait + read) * 100 + '%';
      bar.style.width = ms / (sent + wait + read) * 100 + '%';
      return [name, ms.toFixed(3), make('div', {}, bar)];
    })));
}

// Shows this request for a shell and for Python.
function drawCode() {
  const key = sessionStorage.getItem('matmuld-key'), list = parameters();
  const lines = [];
  const add = (option, text) => lines.push(option + ' ' + quote(text));
  const quoted = (text) => `"${text.replace(/["\\]/g, '\\$&')}"`; // in quotes, because curl opens a file if a value begins with @ or <
  if (isForm()) {
    add('-H', 'Accept: application/json');
    for (const x of both.filter(isFile)) add('-F', `${x.name}=@${quoted(from(x).slice(1))}`);
    for (const x of typed()) add('-F', `${x.name}=${quoted(x.cells.join('\n'))};type=text/csv`);
    for (const pair of list) add('--form-string', pair.join('='));
  } else add('-d', body(list).body);
  part('code').replaceChildren(...isLong() ?
    ['These matrices are too long for a line: save them as CSV files, and choose those above.'] :
    [list.some(([name]) => name === 'rows' || name === 'cols') ? 'For all of C, leave out rows and cols.' : '',
      copied(curl(HERE, ...lines), 'curl'), copied(python(list, key), 'Python')]);
}

// The Python client sends arrays, or names stored matrices. For matrices that the server makes, the code sends a plain
// request. Strings of JSON are also strings of Python, so no link can put code into these lines.
function python(list, key) {
  const secret = 'os.environ["MATMULD_API_KEY"]', os = key ? 'os, ' : '';
  if (list.some(([name, value]) => name.endsWith('_from') && value.endsWith(')'))) {
    return isForm() ? '# The client sends arrays, or names stored matrices: make the other one by NumPy.' :
      `import ${os}urllib.request

body = ${JSON.stringify(body(list).body)}
request = urllib.request.Request(${JSON.stringify(HERE)}, body.encode())
${key ? `request.add_header("Authorization", "Bearer " + ${secret})\n` : ''}` +
      'print(urllib.request.urlopen(request).read().decode())';
  }
  const type = field('dtype').value || both.map((x) => known(x).dtype).find(Boolean) || 'float32';
  const special = /^(bfloat|float8)\w+$/.test(type), dtype = special ? 'ml_dtypes.' + type : JSON.stringify(type);
  const array = (x, dtype) => `np.array(${rows(x).replaceAll('true', 'True').replaceAll('false', 'False')}, ${dtype})`;
  const [a, b] = both.map((x) => {
    const file = JSON.stringify(from(x).slice(1));
    if (!from(x)) return array(x, dtype);
    if (!isFile(x)) return `client.stored(${JSON.stringify(from(x))})`;
    return x.delimiter ? `np.loadtxt(${file}, ${dtype}, delimiter="${x.delimiter}", ndmin=2)` :
      `np.load(${file})` + (special ? `.view(${dtype})` : '');
  });
  const more = [...list.filter(([name]) => !/[ab]_from|dtype|reply/.test(name)).map(([name, value]) => {
    const [, operand] = /^(.+)_from$/.exec(name) || [];
    if (operand) return `, ${operand}=client.stored(${JSON.stringify(value)})`;
    return `, ${name}=${value === 'true' ? 'True' : json(value)}`;
  }), ...terms().map((x) => `, ${x.name}=${array(x, /int|bool/.test(type) ? '"int64"' : '"float64"')}`)].join('');
  return `import ${os}numpy as np, ${special ? 'ml_dtypes, ' : ''}matmuld

client = matmuld.Client(${JSON.stringify(HERE.slice(0, -10))}${key ? `, key=${secret}` : ''})
a = ${a}
b = ${b}
print(client.matmul(a, b${more}))`;
}
