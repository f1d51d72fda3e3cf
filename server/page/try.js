// Try: two operands, their product, where its time went, and the same request for curl and Python. The state is the
// form itself: its fields have the names of the API's parameters. Elements stay texts both ways, because a number of
// JavaScript would round integers of 64 bits.
import { $, call, callJson, copied, copy, make, number, problemBox, remember } from './base.js';

const SHOWN = 16; // the most rows and columns that a table shows
const STACK_SHOWN = 64; // larger stacks are not transferred to show their first matrix
const TEXT_MAX = 4000; // characters of typed matrices that a link and a line may hold
const EXAMPLE = { a: '1,2;3,4', b: '5,6;7,8' };
const URL_BASE = new URL('.', document.baseURI).href.replace(/\/$/, '');
const SPANS = { receive: 'head to last byte of the body', decode: 'reading the matrices', queue: 'waiting for a device',
  upload: 'copying operands, or making them', kernel: 'computing', download: 'copying back', encode: 'writing the reply',
  other: 'between the spans, and the check' };

let form, variants, matrices; // the lists are undefined until they have come
let running, asked; // the AbortController of the last request, and the request for all of the product on show
const operands = { a: { name: 'a' }, b: { name: 'b' } }; // with cells, file, shape, type
const both = Object.values(operands);
const part = (name) => $('#try-' + name);
const field = (name) => form.elements[name];
const say = (text) => part('note').replaceChildren(text);

export function open(section, parameters) {
  if (form && !parameters.size) return remember('try', state()); // back from another view
  if (!form) build(section);
  read(parameters);
  const lost = both.filter((one) => isFile(one) ? !one.file : !source(one) && !one.cells.flat().some(Boolean));
  if (!lost.length) return multiply(true);
  say('The link does not hold ' + lost.map((one) => one.name.toUpperCase() + (source(one).slice(1) && `, ${source(one).slice(1)}`)).join(' and ') +
    ': add it, then press Multiply.');
  loadLists();
}

export function close() {
  running?.abort();
}

// Where an operand comes from: '' if typed, '@NAME' if a file, else as the API has it.
const source = ({ name }) => field(name + '_from').value;
const isFile = (operand) => source(operand)[0] === '@';
const isMade = (operand) => source(operand).endsWith(')');
const isForm = () => both.some(isFile);
const typed = () => both.filter((operand) => !source(operand));
const isLong = () => typed().map(csv).join('').length > TEXT_MAX;
const csv = ({ cells }) => cells.map((row) => row.join() + '\n').join('');

function read(parameters) {
  form.reset();
  for (const operand of both) {
    const text = parameters.get(operand.name);
    setCells(operand, text === '?' ? [['', ''], ['', '']] : (text || EXAMPLE[operand.name]).split(';').map((row) => row.split(',')));
    operand.file = operand.shape = null;
  }
  drawSources();
  for (const [name, value] of parameters) {
    const element = field(name);
    if (element?.type === 'checkbox') element.checked = value === 'true';
    else if (element?.tagName === 'SELECT') add(element, value);
    else if (element?.tagName === 'INPUT') element.value = value;
  }
  update();
}

function state() {
  const values = Object.fromEntries(new FormData(form));
  for (const { name, cells } of typed()) values[name] = isLong() ? '?' : cells.map((row) => row.join()).join(';');
  return values;
}

// The request's parameters, except matrices that it sends, as pairs of texts.
const parameters = () => [...new FormData(form)].filter(([, value]) => value && value[0] !== '@');

// The dimensions of op(X) as far as they are known.
function shapeOf(operand) {
  const { name, cells, shape } = operand;
  if (isMade(operand)) return name === 'a' ? [field('m').value, 0] : [0, field('n').value];
  const stored = source(operand) ? shape : [cells.length, cells[0].length];
  return stored?.length > 1 && field('transpose_' + name).checked ? [...stored.slice(0, -2), stored.at(-1), stored.at(-2)] : stored;
}

// The product's rows and columns, undefined where it has none, and how many matrices it is.
function productShape() {
  const [a, b] = both.map(shapeOf);
  if (!a || !b) return {};
  const [x, y] = [a, b].map((shape) => shape.slice(0, -2).reverse());
  const count = (x.length > y.length ? x : y).reduce((all, _, at) => all * Math.max(x[at] ?? 1, y[at] ?? 1), 1);
  return { rows: a.at(-2), cols: b.length > 1 ? b.at(-1) : undefined, count };
}

// What is not shown is not transferred.
function corner() {
  const shape = productShape();
  if (shape.count > STACK_SHOWN) return [['reply', 'none']];
  return ['rows', 'cols'].filter((name) => shape[name] > SHOWN).map((name) => [name, '0:' + SHOWN]);
}

const json = (text) => /^(-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?|true|false)$/.test(text) ? text : JSON.stringify(text);

function body(list) {
  if (isForm()) {
    const form = new FormData();
    for (const operand of both.filter(isFile)) form.append(operand.name, operand.file);
    for (const operand of typed()) form.append(operand.name, new Blob([csv(operand)], { type: 'text/csv' }));
    for (const [name, value] of list) form.append(name, value);
    return { body: form };
  }
  const members = both.map((operand) => `"${operand.name}": ` + (source(operand) ? `{"from": ${JSON.stringify(source(operand))}}` :
    `[${operand.cells.map((row) => `[${row.map(json).join()}]`).join()}]`));
  for (const [name, value] of list) if (!name.endsWith('_from')) members.push(`"${name}": ${json(value)}`);
  return { type: 'application/json', body: `{${members.join(', ')}}` };
}

// quiet: at opening, no dialog asks for a key.
async function multiply(quiet = false) {
  running?.abort();
  const { signal } = running = new AbortController();
  showProblem();
  say('Multiplying…');
  try {
    await Promise.all(both.map(describe));
    signal.throwIfAborted();
    changed();
    say('Multiplying…');
    const shape = productShape(), list = parameters();
    const whole = { method: 'POST', ...body(list), accept: 'application/x-npy' };
    const begun = performance.now();
    const response = await call('v1/matmul', { ...whole, ...body([...list, ...corner()]), accept: 'application/json', signal, quiet });
    const reply = exact(await response.text());
    asked = whole;
    drawProduct(reply, shape);
    performance.mark('try-product');
    say('');
    drawTimes(response.headers.get('Server-Timing'), await clock(begun), +reply.batched);
  } catch (error) {
    if (error.name === 'AbortError') return;
    say(quiet && error.status === 401 ? 'This server needs an API key. Press Multiply to enter it.' : '');
    if (!quiet || error.status !== 401) showProblem(error);
  }
  if (!variants || !matrices) loadLists();
}

// JSON, with its numbers as texts.
const exact = (text) => JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) => token[0] === '"' ? token : `"${token}"`));

// Shows an error beside the button, and marks the field that it names; or takes both away.
function showProblem(error) {
  for (const element of form.querySelectorAll('.bad')) element.classList.remove('bad');
  part('problem').replaceChildren(...error ? [problemBox(error)] : []);
  const name = error?.field || '';
  (field(name) || field(name.replace('.', '_')) || field(/^[ab]\b/.exec(name)?.[0]))?.classList.add('bad');
}

async function loadLists() {
  const list = (path) => callJson(path, undefined, { quiet: true }).catch((error) => error.status === 404 ? {} : undefined);
  const [known, stored] = await Promise.all([list('v1/variants'), list('v1/matrices')]);
  variants = known?.variants.filter((row) => row.op === 'matmul' && row.available);
  matrices = stored;
  drawSources();
  update();
}

// Learns the shape and the type of a stored matrix. If that fails, the product's error says why.
async function describe(operand) {
  const name = source(operand);
  if (!name || isMade(operand) || isFile(operand)) return;
  const head = await call('v1/matrices/' + name, { method: 'HEAD', accept: '*/*', quiet: true }).catch(() => null);
  operand.shape = head && head.headers.get('Matmul-Shape').split(',').map(Number);
  operand.type = head?.headers.get('Matmul-Dtype');
}

async function takeFile(operand, file) {
  const { name } = operand;
  add(field(name + '_from'), '@' + file.name);
  Object.assign(operand, { file, shape: null, type: '', delimiter: '' });
  if (/\.csv$/i.test(file.name)) {
    const lines = (await file.text()).trimEnd().split('\n');
    operand.delimiter = lines[0].includes(';') ? ';' : ',';
    operand.shape = [lines.length, lines[0].split(operand.delimiter).length];
  } else {
    const head = await file.slice(0, 1024).text();
    const [, kind, bytes] = /'descr': '[<|](\w)(\d)/.exec(head) || [];
    const bits = kind + bytes === 'f1' ? '8_e5m2' : kind === 'b' ? '' : bytes * 8;
    operand.shape = /'shape': \((.*?),?\)/.exec(head)?.[1].split(',').map(Number);
    operand.type = kind === 'V' ? '' : { f: 'float', i: 'int', u: 'uint', b: 'bool' }[kind] + bits;
  }
  $('.file p', field(name)).textContent = `${file.name}: ` + (operand.shape ? `${operand.shape.join('×')} ${operand.type}` : 'no .npy file');
  changed();
}

function build(section) {
  form = part('form');
  for (const { name } of both) {
    const panel = field(name);
    panel.append($('template', section).content.cloneNode(true));
    $('select', panel).name = name + '_from';
    $('[type=checkbox]', panel).name = 'transpose_' + name;
  }
  const panelOf = (target) => operands[target.closest('fieldset')?.name];
  form.addEventListener('input', async ({ target }) => {
    const operand = panelOf(target);
    if (target.type === 'file') return target.files[0] && takeFile(operand, target.files[0]);
    if (target.className === 'seed') add(field(operand.name + '_from'), `uniform(${target.value})`);
    if (target.dataset.at) {
      const [row, column] = target.dataset.at.split(',');
      operand.cells[row][column] = target.value.trim();
    }
    if (target.name === 'variant') field('tile').value = '';
    if (operand && target.tagName === 'SELECT') await describe(operand);
    changed();
  });
  form.addEventListener('click', ({ target }) => {
    if (!target.value || target.tagName !== 'BUTTON') return;
    const operand = panelOf(target), [rows, columns] = target.value.split(',').map(Number), { cells } = operand;
    const resized = Array.from({ length: cells.length + rows }, (_, row) =>
      Array.from({ length: cells[0].length + columns }, (_, column) => cells[row]?.[column] ?? '0'));
    if (!resized[0]?.length) return;
    setCells(operand, resized);
    changed();
  });
  form.addEventListener('paste', (event) => {
    const text = event.clipboardData.getData('text').replace(/\r/g, '').replace(/\n+$/, '');
    const separator = ['\t', ';', ',', ' '].find((one) => text.includes(one)) || '\n';
    if (!event.target.dataset.at || !/[\t;, \n]/.test(text)) return;
    event.preventDefault();
    const operand = panelOf(event.target);
    setCells(operand, text.split('\n').map((row) => row.split(separator).map((one) => one.trim())));
    $('[data-at]', field(operand.name)).focus();
    changed();
  });
  form.addEventListener('keydown', move);
  for (const type of ['dragover', 'drop']) section.addEventListener(type, (event) => event.preventDefault());
  form.addEventListener('drop', ({ target, dataTransfer: { files } }) => files[0] && panelOf(target) && takeFile(panelOf(target), files[0]));
  form.addEventListener('submit', (event) => (event.preventDefault(), multiply()));
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !section.hidden) multiply();
  });
  part('link').addEventListener('click', () => copy(location.href).then(() => say('Copied.')));
  part('download').addEventListener('click', async () => {
    try {
      const href = URL.createObjectURL(await (await call('v1/matmul', asked)).blob());
      make('a', { href, download: 'c.npy' }).click();
      setTimeout(URL.revokeObjectURL, 10000, href);
    } catch (error) {
      showProblem(error);
    }
  });
}

// Arrow keys and Enter move between cells; to the sides only from the end of a text, or if all of it is selected.
function move(event) {
  const { target, key } = event;
  const { selectionStart: from, selectionEnd: to, value } = target;
  const sides = target.dataset.at && (to - from === value.length || from === to && (key === 'ArrowLeft' ? from === 0 : to === value.length));
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], Enter: [1, 0], ArrowLeft: sides && [0, -1], ArrowRight: sides && [0, 1] }[key];
  if (!target.dataset.at || !step || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const at = target.dataset.at.split(',').map((one, axis) => +one + step[axis]).join();
  const next = $(`[data-at="${at}"]`, target.closest('table'));
  next?.focus();
  next?.select();
}

// Gives an operand these cells, in rows of equal length, and draws those that are shown.
function setCells(operand, cells) {
  const length = Math.max(...cells.map((row) => row.length));
  operand.cells = cells.map((row) => [...row, ...Array(length - row.length).fill('')]);
  $('.typed .scroll', field(operand.name)).replaceChildren(make('table', {},
    make('caption', {}, `${cells.length}×${length}` + (Math.max(cells.length, length) > SHOWN ? `, in part` : '')),
    ...operand.cells.slice(0, SHOWN).map((row, down) => make('tr', {}, ...row.slice(0, SHOWN).map((value, right) =>
      make('td', {}, make('input', { value, 'data-at': `${down},${right}`, autocomplete: 'off',
        'aria-label': `${operand.name.toUpperCase()}, row ${down + 1}, column ${right + 1}` })))))));
}

function changed() {
  update();
  remember('try', state());
  say('Changed. Press Multiply to see the product.');
}

// Shows what belongs to the choices that are made.
function update() {
  const show = (element, shown) => { element.parentNode.hidden = element.disabled = !shown; };
  for (const operand of both) {
    const panel = field(operand.name), from = source(operand);
    $('.typed', panel).hidden = from;
    $('.file', panel).hidden = !isFile(operand);
    show($('.seed', panel), from.startsWith('uniform('));
    if (from.startsWith('uniform(')) $('.seed', panel).value = from.slice(8, -1);
  }
  const [a, b] = both.map(isMade);
  show(field('m'), a);
  show(field('k'), a && b);
  show(field('n'), b);
  if (variants) drawVariants();
  drawCode();
}

// Those of the chosen backend that take the type. `auto` as a backend is a GPU if there is one.
function drawVariants() {
  const backends = [...new Set(variants.map((row) => row.backend))];
  const backend = field('backend').value || (backends.includes('cuda') ? 'cuda' : backends[0]);
  const dtype = field('dtype').value;
  const rows = variants.filter((row) => row.backend === backend && (!dtype || row.dtypes.includes(dtype)));
  const chosen = rows.find((row) => row.name === (field('variant').value || 'auto'));
  fill('dtype', [...new Set(variants.flatMap((row) => row.dtypes))]);
  fill('backend', backends);
  fill('variant', rows.filter((row) => row.name !== 'auto').map((row) => row.name),
    (name) => rows.find((row) => row.name === name).wrong_on_purpose ? `${name} (wrong on purpose)` : name);
  fill('tile', chosen?.tiles || []);
  field('tile').parentNode.hidden = !chosen?.tiles && !field('tile').value;
  part('summary').textContent = chosen ? `${chosen.name}: ${chosen.summary}` : '';
}

// What is chosen stays, though it may not be in the list: a link may come from another server.
function fill(name, names, title = (one) => one) {
  const select = field(name), { value } = select;
  select.replaceChildren(new Option('auto', ''), ...names.map((one) => new Option(title(one), one)));
  add(select, value, `${value} (not here)`);
}

function add(select, value, title = value) {
  if (![...select.options].some((option) => option.value === value)) select.append(new Option(title, value));
  select.value = value;
}

function drawSources() {
  for (const { name, file } of both) {
    const select = field(name + '_from'), { value } = select;
    select.replaceChildren(new Option('typed or pasted', ''), new Option('file, .npy or .csv', '@' + (file?.name || '')),
      new Option('random', `uniform(${name === 'a' ? 1 : 2})`), new Option('identity', 'identity()'));
    const stored = (matrices?.matrices || []).map((one) => new Option(`${one.name}: ${one.shape.join('×')} ${one.dtype}`, one.name));
    if (stored.length) select.append(make('optgroup', { label: 'stored on the server' }, ...stored));
    add(select, value);
  }
}

function drawProduct(reply, { rows, cols, count = 1 }) {
  let { c = [], shape: { length: depth } } = reply;
  for (; depth > 2; depth--) c = c[0] ?? [];
  for (; depth < 2; depth++) c = [c];
  const caption = (count > 1 ? `${count} matrices of ` : '') + `${rows ?? 1}×${cols ?? 1}, ${reply.dtype}` +
    (count > STACK_SHOWN ? '; download them to see them' : count > 1 ? '; the first is shown' : '') +
    (rows > SHOWN || cols > SHOWN ? `; at most ${SHOWN} rows and columns are shown` : '');
  const heads = (list) => list.map((_, at) => make('th', { scope: 'col' }, `${at + 1}`));
  part('c').replaceChildren(make('table', {}, make('caption', {}, caption), make('tr', {}, make('td'), ...heads(c[0] ?? [])),
    ...c.map((row, at) => make('tr', {}, make('th', { scope: 'row' }, `${at + 1}`),
      ...row.map((text) => make('td', { class: 'number' }, text))))));
  const facts = [`variant ${reply.variant}`, `backend ${reply.backend}`, `device ${reply.device}`];
  if (reply.path) facts.push(`path ${reply.path}`);
  if (reply.verify) {
    const { passed, residual, bound } = reply.verify;
    const short = (text) => +Number(text).toPrecision(3);
    facts.push(`check ${passed ? 'passed' : passed === false ? 'FAILED' : 'of no row'}: residual ${short(residual)}, bound ${short(bound)}`);
  }
  part('facts').textContent = facts.join(' · ');
  part('out').hidden = false;
}

// The browser's times of the last product. An observer sees each; the browser's own list of them is full at some point.
let timed;
new PerformanceObserver((list) => {
  timed = list.getEntriesByName(URL_BASE + '/v1/matmul').filter((one) => one.responseStatus !== 401).at(-1) || timed;
}).observe({ type: 'resource' });

async function clock(begun) {
  for (let tries = 0; tries < 50 && !(timed?.startTime >= begun); tries++) await new Promise((done) => setTimeout(done, 10));
  return timed?.startTime >= begun ? timed : { startTime: 0, requestStart: 0, responseStart: 0, responseEnd: 0 };
}

// The server's clock is another one than the browser's. Its time is drawn in the middle of the browser's wait.
function drawTimes(header, { startTime, requestStart, responseStart, responseEnd }, batched) {
  const spans = Object.fromEntries([...header.matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, ms]) => [name, +ms]));
  const { total } = spans, sent = requestStart - startTime, wait = Math.max(total, responseStart - requestStart);
  const read = responseEnd - responseStart, added = (wait - total) / 2, begin = sent + added;
  const rows = [];
  const row = (kind, name, what, ms, from, ...more) => {
    const bars = [[from, more.length ? ms / 2 : ms], ...more.map((at) => [at, ms / 2])].map(([at, length]) => {
      const bar = make('i');
      bar.style.left = `${at / (sent + wait + read) * 100}%`;
      bar.style.width = `${length / (sent + wait + read) * 100}%`;
      return bar;
    });
    rows.push(make('tr', { class: kind }, make('th', { scope: 'row' }, name), make('td', { class: 'number' }, number(ms)),
      make('td', {}, make('div', {}, ...bars)), make('td', { class: 'note' }, what)));
  };
  row('', 'browser: before', 'connecting, waiting its turn', sent, 0);
  row('', 'browser: to first byte', 'from sending the request', wait, sent);
  row('server', 'server: total', 'head to head of the reply', total, begin);
  delete spans.total;
  spans.other = Math.max(0, total - Object.values(spans).reduce((sum, ms) => sum + ms));
  let at = begin;
  for (const [name, ms] of Object.entries(spans)) {
    at = Math.max(begin, Math.min(at, begin + total - ms)); // the spans of a shared launch may be longer
    row('span', name, SPANS[name], ms, at);
    at += ms;
  }
  row('added', 'network and browser', 'the wait less the server’s total', added * 2, sent, begin + total);
  row('', 'browser: to last byte', 'reading the reply', read, sent + wait);
  part('times').replaceChildren(make('table', {}, make('caption', {}, 'Milliseconds' +
    (batched > 1 ? `; upload and kernel are those of the launch that ${batched} requests shared` : '')), ...rows));
}

// The same request for a shell, and for Python.
function drawCode() {
  const long = isLong(), key = sessionStorage.getItem('matmuld-key'), list = [...parameters(), ...corner()];
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = [`curl -sS --fail-with-body ${URL_BASE}/v1/matmul`];
  if (key) lines.push('-H "Authorization: Bearer $MATMULD_API_KEY"');
  if (isForm()) {
    const file = (operand) => source(operand).slice(1).replace(/.*[^\w.-].*/, (name) => `"${name.replace(/["\\]/g, '\\$&')}"`);
    lines.push('-H \'Accept: application/json\'', ...both.filter(isFile).map((one) => '-F ' + quote(`${one.name}=@${file(one)}`)),
      ...typed().map((one) => '-F ' + quote(`${one.name}=${csv(one)};type=text/csv`)),
      ...list.map(([name, value]) => '-F ' + quote(`${name}=${value}`)));
  } else lines.push('-H \'Content-Type: application/json\'', '-d ' + quote(body(list).body));
  part('code').replaceChildren(...long ? ['These matrices are too long for a line. Save them as CSV files, and choose the files above.'] :
    [copied(lines.join(' \\\n  '), 'curl'), copied(python(list, key), 'Python')]);
  part('lost').textContent = isForm() ? 'The link does not hold files.' : long ? 'The link does not hold the matrices.' : '';
}

// By the client, or by a plain request if the server makes an operand: the client sends arrays, or names stored ones.
function python(list, key) {
  const secret = 'os.environ["MATMULD_API_KEY"]', os = key ? 'os, ' : '';
  if (both.some(isMade)) {
    return isForm() ? '# The Python client takes arrays and stored matrices: make this operand by NumPy.' : `import ${os}json, urllib.request

request = urllib.request.Request("${URL_BASE}/v1/matmul", b'${body(list).body}',
    {"Content-Type": "application/json"${key ? `, "Authorization": "Bearer " + ${secret}` : ''}})
print(json.load(urllib.request.urlopen(request)))`;
  }
  const type = field('dtype').value || both.map((one) => source(one) && one.type).find(Boolean) || 'float32';
  const special = /bfloat|float8/.test(type), dtype = special ? `ml_dtypes.${type}` : `"${type}"`;
  const words = { NaN: 'np.nan', Infinity: 'np.inf', '-Infinity': '-np.inf', true: 'True', false: 'False' };
  const [a, b] = both.map((one) => {
    const file = JSON.stringify(source(one).slice(1));
    if (!source(one)) return `np.array([${one.cells.map((row) => `[${row.map((text) => words[text] ?? json(text)).join(', ')}]`).join(', ')}], ${dtype})`;
    if (!isFile(one)) return `client.stored("${source(one)}")`;
    if (one.delimiter) return `np.loadtxt(${file}, ${dtype}, delimiter="${one.delimiter}", ndmin=2)`;
    return `np.load(${file})${special ? `.view(${dtype})` : ''}`;
  });
  const more = list.filter(([name]) => !/_from$|dtype/.test(name)).map(([name, value]) => `, ${name}=` +
    (value === 'true' ? 'True' : name === 'tile' ? value : `"${value}"`)).join('');
  return `import ${os}numpy as np, ${special ? 'ml_dtypes, ' : ''}matmuld

client = matmuld.Client("${URL_BASE}"${key ? `, key=${secret}` : ''})
a = ${a}
b = ${b}
print(client.matmul(a, b${more}))`;
}
