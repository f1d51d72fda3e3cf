// The view Learn: a page for each lesson of docs/lessons, with a control, a picture, figures, and the requests behind
// them. A server without a GPU predicts GPU kernels; a server with a GPU also measures them.
import { $, call, copied, curl, make, number, Problem, problemBox, remember, rich } from './base.js';
import { markdown } from './markdown.js';
import { asker, figures, listing, options, text, variantList } from './part.js';
import { access, lanesOf, matrices, PATTERNS, sectors, squares } from './learn_draw.js';

// Median milliseconds on one H200 on 2026-11-23 (docs/figures/kernels-h200-2026-11-23.csv), by m, k and n of a product.
const TIMES = { '1024,1024,1024': { naive: 0.363, naive_uncoalesced: 4.44, tiled_8: 0.437, tiled_16: 0.279, tiled_32: 0.248 },
  '228,240,112': { tiled_32: 0.0145, tiled_async: 0.0122 } };
const TRAFFIC = ['variant', 'global_loads', 'global_load_sectors', 'global_store_sectors', 'shared_load_passes',
  'bank_conflict_passes', ['FLOP/byte', (row) => row.arithmetic_intensity],
  ['median ms', (row) => row.kernel_ms && row.kernel_ms.median], ['GFLOP/s', (row) => row.gflops],
  ['GB/s', (row) => row.gigabytes_per_second], 'relative_error', ['error / bound', (row) => row.max_error],
  ['remark', (row) => (row.error ? row.error.detail : null)]];
const kind = ({ rows, device = rows[0].device }) =>
  (rows.some((row) => row.measured) ? 'Predicted, and measured on ' + device : 'Predicted, not measured');
// Explanations of columns, by words of their titles.
const MEANINGS = { 'global loads': 'elements that threads load from global memory',
  sectors: 'the parts of global memory, of 32 bytes each, that are moved',
  'load passes': 'shared memory has 32 banks, and in one pass each serves one word',
  'conflict passes': 'those added because a bank has several words to serve',
  'FLOP/byte': 'floating-point operations for each byte of the sectors', 'error / bound': 'above 1 the result is wrong' };
function traffic(part, reply) {
  const times = TIMES[[reply.m, reply.k, reply.n]] ?? {};
  figures(part, kind(reply), reply.rows, ...TRAFFIC, ['ms, H200, 2026‑11‑23', (row) => times[row.variant]]);
  const titles = $('.figures thead', part).textContent;
  const told = Object.entries(MEANINGS).filter(([words]) => titles.includes(words));
  $('.figures', part).append(make('p', { class: 'note' }, rich(told.map(([words, meaning]) => `*${words}*: ${meaning}.`).join(' '))));
}
const cuda = (...names) => names.map((name) => 'cuda:' + name);
// The number in a field, or the nearest number that the field allows.
const within = ({ value, min, max }) => Math.min(max, Math.max(min, Math.round(value)));
const plural = (count, what) => `${number(count, 15)} ${what}${count === 1 ? '' : what.endsWith('s') ? 'es' : 's'}`;

// A control is [name, label, first value, least, most] for a number, [name, label, choices] for a list, or [name,
// label] for a text. show(values, post, part) asks the server by post(body), draws, and returns a sentence.
const LESSONS = {
  memory: { title: 'Global memory', file: '1-memory.md',
    look: ['Each row is a line of 128 bytes of global memory, in 4 *sectors* of 32 bytes, with a thick line between them. The 32 *lanes* (threads) of a warp ' +
      'load one word each; a number is a lane. Memory sends whole sectors: what is grey is moved for nothing.',
    'The *stride* is the number of words from one lane to the next. Set it from 1 to 8: the warp wants as much as before, but 8 times as many bytes are moved. With stride 1 the ' +
      'lanes use all of each sector: the load is *coalesced*. With an offset of 1 as well it is misaligned, and takes 5 sectors instead of 4.',
    'The kernel `naive` computes an element of C in each thread. For one step of its sum a warp loads 4 sectors of B, and ' +
      'one of A that all lanes share. The lanes of `naive_uncoalesced` walk down a column of A instead: 32 sectors, and ' +
      'one of B. That is 33 against 5, or 6.6 times as many; but an H200 took 12 times as long. ' +
      'By the rough model of the lesson, the cause is a cache that serves one line a cycle: a step takes 33 lines instead of 2.'],
    controls: [['stride', 'Stride from lane to lane, in words', 2, 1, 32], ['offset', 'Offset in words', 0, 0, 31], ['word_bytes', 'Bytes of a word', [4, 8]]],
    async show({ stride, offset, word_bytes }, post, part) {
      const reply = await post({ op: 'shared_access', patterns: 'stride', strides: stride, offset, word_bytes: +word_bytes,
        padded: false });
      const row = reply.rows.find(({ memory }) => memory === 'global');
      sectors(part, row);
      traffic(part, await post({ m: 1024, k: 1024, n: 1024, variants: cuda('naive', 'naive_uncoalesced') }));
      return `${plural(row.predicted_sectors, 'sector')}: the warp wants ${row.predicted_bytes_used} bytes, and ` +
        `${number(row.predicted_bytes_moved, 15)} are moved` + (row.measured ? `, ${row.cycles_per_access} cycles apart.` : '.');
    } },
  tiles: { title: 'Tiles', file: '2-tiles.md',
    look: ['A block computes a *tile* of C, a square of T×T elements, one in each thread. It needs the grey rows of A and ' +
      'columns of B, and goes along them in steps: it copies a tile of A and one of B (blue) to shared memory, and then ' +
      'uses each element T times.',
    'Double T: the global loads halve, or nearly so if the last tiles are not full. Without tiles (`naive`) each multiplication loads its two elements itself. ' +
      'The time falls less, because caches serve most loads of `naive`: set m = k = n to 1024, and the table has times.'],
    controls: [['tile', 'Edge of a tile, T', [8, 16, 32]], ['edge', 'm = k = n', 128, 32, 4096], ['step', 'Step along k', 1, 0, 511]],
    async show({ tile, edge, step }, post, part) {
      const reply = await post({ m: edge, k: edge, n: edge, variants: cuda('naive', 'tiled_' + tile) });
      const middle = Math.floor(edge / tile / 2);
      matrices(part, reply, +tile, { row: middle, column: middle, step: Math.min(step, Math.ceil(edge / tile) - 1) });
      traffic(part, reply);
      const [naive, tiled] = reply.rows.map((row) => row.global_loads);
      return `${number(naive, 15)} global loads without tiles, ${number(tiled, 15)} with tiles: 1/${number(naive / tiled)}.`;
    } },
  barriers: { title: 'Barriers', file: '3-barriers.md',
    look: ['Threads read what other threads of their block have stored in shared memory. `__syncthreads()` is a *barrier*: ' +
      'each thread waits there until all of its block have arrived. The comment above it says for what.',
    'Compare `tiled_32` with `tiled_racy`, which lacks the first barrier of each step (MISSING). The predictions ' +
      'say nothing of that: no model sees a race. On a GPU its error is far above the bound. `staged_copy` needs no ' +
      'barrier, so its threads share nothing.'],
    controls: [['variant', 'Kernel', ['tiled_32', 'tiled_racy', 'tiled_async', 'staged_copy']]],
    async show({ variant }, post, part) {
      const source = await (await post(`v1/variants/${variant}/source?backend=cuda`)).text();
      const shown = make('pre', { tabindex: '0', role: 'region', 'aria-label': 'The source of ' + variant }, listing(source,
        (line) => (line.includes('MISSING: __sync') ? 'missing' : line.includes('__syncthreads()') ? 'barrier' : null)));
      $('.picture', part).replaceChildren(shown);
      const lines = [...shown.firstChild.children];
      const linesOf = (kind) => lines.flatMap((line, at) => (line.className === kind ? [at + 1] : []));
      const at = linesOf('barrier'), [missing] = linesOf('missing');
      shown.scrollTop = (lines[at[0] - 1]?.offsetTop ?? shown.scrollHeight) - 60;
      traffic(part, await post({ m: 512, k: 512, n: 512, variants: cuda(variant) }));
      return `${variant} has ${at.length ? `barriers in line${at.length > 1 ? 's' : ''} ` + at.join(' and ') : 'no barrier'}` +
        (missing ? `, and lacks one at line ${missing}.` : '.');
    } },
  strides: { title: 'Row strides', file: '4-strides.md',
    look: ['A tile is a sub-matrix: it has a height and a width of its own, but from one of its rows to the next it is ' +
      'as far as in the whole matrix. That is its *row stride*, which libraries call the leading dimension: element (r, c) lies at first + r · row stride + c.',
    'Move the block to the last row or column, or to the last step. There tiles reach past the edge (hatched), ' +
      'and the kernel fills them with zeros, which add nothing.'],
    controls: [['m', 'm', 228, 1, 512], ['k', 'k', 240, 1, 512], ['n', 'n', 112, 1, 512], ['tile', 'Edge of a tile, T', [32, 16]],
      ['row', 'Block’s row', 7, 0, 31], ['column', 'Block’s column', 3, 0, 31], ['step', 'Step along k', 7, 0, 31]],
    async show({ m, k, n, tile, row, column, step }, post, part) {
      const edge = +tile, last = (length, at) => Math.min(at, Math.ceil(length / edge) - 1);
      const block = { row: last(m, row), column: last(n, column), step: last(k, step) };
      const range = (length, at) => `${at * edge}:${Math.min(length, (at + 1) * edge)}`;
      const reply = await post({ a: { from: 'uniform(1)' }, b: { from: 'uniform(2)' }, m, k, n,
        rows: range(m, block.row), cols: range(n, block.column) }, 'v1/matmul');
      matrices(part, { m, k, n }, edge, block);
      const tileOf = (name, height, width, down, right) => {
        const [rows, columns] = [[height, down], [width, right]].map(([length, at]) => Math.min(edge, length - at * edge));
        return { tile: name, 'first element': down * edge * width + right * edge, 'row stride': width, rows, columns,
          'zeros in it': name === 'C' ? null : edge * edge - rows * columns };
      };
      const [rows, columns] = reply.shape;
      figures(part, `Block (${block.row}, ${block.column}) at step ${block.step}`, [tileOf('A', m, k, block.row, block.step),
        tileOf('B', k, n, block.step, block.column), tileOf('C', m, n, block.row, block.column)],
      'tile', 'first element', 'row stride', 'rows', 'columns', 'zeros in it');
      return `The server’s part of C for this block has ${rows}×${columns} elements of ${tile}×${tile}; ` +
        `its first one is ${reply.c[0][0]}.`;
    } },
  banks: { title: 'Banks and padding', file: '5-banks.md',
    look: ['Shared memory has 32 *banks*, and neighbouring words lie in neighbouring banks. Each row has one word of every ' +
      'bank; a number is the lane (thread of the warp) that reads the word. In one *pass* each bank serves one word: a bank ' +
      'with more words in its column (orange, red) takes more.',
    'Stride 32 is a column of a tile with 32 columns: all its words lie in bank 0, and are served one after another. ' +
      'The most words of one bank are the *degree*. Padding leaves one word unused (·) after every 32. So each row of the ' +
      'tile begins one bank further on. But padding hurts an access that had no conflict: set stride 31, padded. Words of ' +
      '8 bytes take two banks each, and each half of the warp has passes of its own.'],
    controls: [['pattern', 'Pattern', [...Object.keys(PATTERNS), 'offsets']], ['stride', 'Stride from lane to lane, in words', 32, 1, 32],
      ['padded', 'Padding', ['no', 'yes']], ['word_bytes', 'Bytes of a word', [4, 8]], ['bank_bytes', 'Bytes of a bank', [4, 8]],
      ['offsets', 'The word of each lane; with a dash it takes no part']],
    prepare(form, changed) {
      if (changed === form.offsets) form.pattern.value = 'offsets';
      form.stride.disabled = form.pattern.value !== 'stride';
      if (form.pattern.value !== 'offsets')
        form.offsets.value = lanesOf(form.pattern.value, within(form.stride)).join(' ');
    },
    async show({ pattern, stride, padded, word_bytes, bank_bytes, offsets }, post, part) {
      const entries = offsets.split(/[\s,]+/).filter(Boolean), bad = entries.find((word) => !/^(\d+|-)$/.test(word) || word > 2047) ??
        (entries.length > 32 ? entries[32] : null);
      if (pattern === 'offsets' && bad) throw new Problem(0, { title: `“${bad}” is no word of a lane`,
        detail: 'Write at most 32 numbers from 0 to 2047 or dashes, with spaces between them.' });
      const words = entries.map((word) => (word === '-' ? null : +word));
      const asked = pattern === 'offsets' ? { offsets: words } :
        { patterns: pattern, ...pattern === 'stride' && { strides: stride } };
      const reply = await post({ op: 'shared_access', ...asked, word_bytes: +word_bytes, bank_bytes: +bank_bytes });
      const rows = reply.rows.filter(({ memory }) => memory === 'shared');
      const row = rows.find((one) => one.padded === (padded === 'yes'));
      access(part, words, row);
      figures(part, kind(reply), rows, ['rows', (one) => (one.padded ? 'padded' : 'not padded')], ['degree', (one) => one.predicted_degree],
        ['passes', (one) => one.predicted_wavefronts], 'latency_cycles', 'cycles_per_access');
      return `Degree ${row.predicted_degree}, ${plural(row.predicted_wavefronts, 'pass')}`;
    } },
  occupancy: { title: 'Occupancy', file: '6-occupancy.md',
    look: ['A multiprocessor keeps several blocks at a time, so some warps compute while others wait. Each square is the ' +
      'room for a warp; a number is the block that has it, and a thick line goes round each block. Threads, *registers* (where each thread has its variables) and ' +
      'shared memory limit how many blocks fit. *Occupancy* is the share of the squares that are taken.',
    'Take 1024 threads and 32 registers, then 33: half of the warps are gone. More warps are no aim in ' +
      'themselves: a kernel that does much with its registers is faster with few.'],
    controls: [['threads', 'Threads of a block', 256, 1, 1024], ['registers', 'Registers of a thread', 40, 1, 255],
      ['shared', 'Shared memory of a block, in bytes', 8192, 0, 1048576]],
    async show({ threads, registers, shared }, post, part, variants) {
      const { rows: [row] } = await post({ op: 'occupancy', threads_per_block: threads, registers_per_thread: registers,
        shared_bytes: shared });
      const blockOf = (warp) => (warp < row.warps ? Math.floor(warp * row.blocks / row.warps) : null);
      const edge = (warp) => [['left', -1, 0], ['right', 1, 15], ['top', -16], ['bottom', 16]].filter(([, by, end]) =>
        warp % 16 === end || blockOf(warp + by) !== blockOf(warp)).map(([side]) => side).join(' ');
      const all = Array.from({ length: row.warps_max }, (_, warp) => (blockOf(warp) === null ? { kind: 'free' } :
        { text: blockOf(warp), kind: 'series' + blockOf(warp) % 2, edge: edge(warp) }));
      squares(part, `Warps on a multiprocessor of compute capability ${row.compute_capability}`, 'warp',
        Array.from({ length: all.length / 16 }, (_, at) => [() => 16 * at, all.slice(16 * at, 16 * at + 16)]));
      const known = variants.flatMap((one) =>
        (one.occupancy || []).map((entry) => ({ ...entry, kernel: `${one.op} ${one.name}` })));
      figures(part, 'What a multiprocessor holds', [{ kernel: 'yours', ...row }, ...known], 'kernel', 'tile',
        ['threads', (one) => one.threads_per_block], ['registers', (one) => one.registers_per_thread], 'shared_bytes', 'blocks', 'warps',
        ['% of all warps', (one) => one.warps_max && 100 * one.warps / one.warps_max], ['limited by', (one) => one.limiters]);
      return `${plural(row.blocks, 'block')} of ${plural(Math.ceil(threads / 32), 'warp')}, limited by ${text(row.limiters)}. ` +
        `Blocks that each limit alone would allow: ${text(row.blocks_by)}.`;
    } },
  transposition: { title: 'Transposition', file: '7-transposition.md',
    look: ['`naive` stores down a column of C, so each lane stores to a sector of its own. `shared` goes through a tile: ' +
      'both matrices are accessed along their rows, and the tile is read down its column instead, from one bank. ' +
      '`padded` gives the tile’s rows 33 words.',
    'Choose the kernels one after the other: the bad access moves to shared memory, and there padding cures it. The picture ' +
      'shows one access of a warp, for a matrix or a tile with 32 columns. `vectorized` has the accesses of `padded`, but ' +
      'moves 16 bytes with each, and is in the table alone.'],
    controls: [['variant', 'Kernel', ['naive', 'shared', 'padded']], ['edge', 'm = n', 4096, 32, 8192]],
    async show({ variant, edge }, post, part) {
      const { rows } = await post({ op: 'shared_access', patterns: 'stride', strides: 32, word_bytes: 4 });
      const [plain, padded, stores] = rows;
      if (variant === 'naive') sectors(part, stores);
      else access(part, lanesOf('stride', 32), variant === 'shared' ? plain : padded);
      const reply = await post({ op: 'transpose', m: edge, n: edge,
        variants: cuda('naive', 'shared', 'padded', 'vectorized') });
      traffic(part, reply);
      const row = reply.rows.find((one) => one.variant === variant);
      return `${variant}: ${plural(row.global_store_sectors, 'sector')} stored, ${plural(row.bank_conflict_passes, 'pass')} for conflicts.`;
    } },
  asynchronous: { title: 'Asynchronous copies', file: '8-asynchronous.md',
    look: ['A column is a *turn*: the time in which a block copies or multiplies the tiles of one step. A number is a step ' +
      'along k. `tiled_32` copies the tiles of a step, waits, multiplies them, and copies the next. A *stage* is shared ' +
      'memory for a tile of A and one of B. `tiled_async` has two stages, so it copies the next tiles to one while it ' +
      'multiplies those of the other.',
    'Both load as much and read shared memory as often: copying ahead saves none of that. It gains only if no ' +
      'other block of the multiprocessor fills the wait, as with this small product: ' +
      'with k = 240 the table has times.'],
    controls: [['k', 'k', 240, 32, 480]],
    async show({ k }, post, part) {
      const reply = await post({ m: 228, k, n: 112, variants: cuda('tiled_32', 'tiled_async') });
      const steps = Math.ceil(reply.k / 32), turns = Array.from({ length: 2 * steps });
      const row = (name, kind, stepAt) => [() => name, turns.map((_, turn) => {
        const step = stepAt(turn);
        return step >= 0 && step < steps && Number.isInteger(step) ? { text: step, kind } : {};
      })];
      squares(part, 'What a block does in each turn', 'turn', [row('tiled_32 copies', 'few', (turn) => turn / 2),
        row('tiled_32 multiplies', 'one', (turn) => (turn - 1) / 2), row('tiled_async copies', 'few', (turn) => turn),
        row('tiled_async multiplies', 'one', (turn) => turn - 1)]);
      traffic(part, reply);
      return `${plural(steps, 'step')}: ${2 * steps} turns of tiled_32, ${steps + 1} of tiled_async.`;
    } },
};

let current = null; // { name, form, show, stop } of the lesson on the page
const replies = new Map(); // by request, so a GPU measures each request once

function control([name, label, first, least, most]) {
  const input = Array.isArray(first) ? make('select', { name }) :
    make('input', { name, type: first === undefined ? 'text' : 'number', value: first, min: least, max: most });
  if (Array.isArray(first)) options(input, first);
  return make('label', {}, most === undefined ? label : `${label} (${least} to ${most})`, input);
}

// Loads the lesson's text when the lesson is opened. Links to other lessons lead to their pages here, and tutorials.md
// opens in place. The server has no other files.
function lesson(own) {
  const text = make('div');
  const read = async (file, at) => {
    try {
      const got = await (await call('page/' + file)).text();
      text.replaceChildren(...markdown(got.replaceAll('http://127.0.0.1:8080/', new URL('.', location)), link));
      if (at) $('#at-' + at, text).scrollIntoView();
    } catch (error) {
      text.replaceChildren(problemBox(error));
    }
  };
  const link = (address, label) => {
    const [file, at] = address.split('#'), [name] = Object.entries(LESSONS).find(([, one]) => one.file === file) || [];
    if (name) return make('a', { href: '#learn?lesson=' + name }, label);
    if (file && file !== 'tutorials.md') return make('span', { title: address }, label);
    return make('a', { href: 'page/tutorials.md', onclick: (event) => {
      event.preventDefault();
      read('tutorials.md', at);
    } }, label);
  };
  return make('details', { class: 'lesson', ontoggle: ({ target }) => target.open && target === text.parentNode && read(own) },
    make('summary', {}, 'Read the lesson, docs/lessons/' + own), text);
}

function build(name, host, variants) {
  const { title, file, look, controls, prepare, show } = LESSONS[name];
  const form = make('form', { class: 'row' }, ...controls.map(control)), lines = make('div');
  host.replaceChildren(make('h3', {}, title), ...look.map((one) => make('p', {}, rich(one))), form, make('div', { class: 'picture' }),
    make('div', { class: 'figures' }), lesson(file), make('h4', {}, 'The requests behind this page'), lines);
  const { show: ask, stop } = asker(form, async (_, signal) => {
    const values = Object.fromEntries(controls.map(([name]) =>
      [name, form[name].type === 'number' ? within(form[name]) : form[name].value]));
    const sent = [];
    const post = async (body, path = typeof body === 'string' ? body : 'v1/benchmark') => {
      const json = body === path ? undefined : JSON.stringify(body);
      const line = curl(path, path === 'v1/benchmark' && "-H 'Accept: text/plain'", json && `-d '${json}'`);
      sent.push(copied(line, `curl, request ${sent.length + 1}`));
      lines.replaceChildren(...sent);
      if (!json) return call(path, { signal });
      if (!replies.has(line)) replies.set(line, await (await call(path,
        { method: 'POST', type: 'application/json', body: json, accept: 'application/json', signal })).json());
      return replies.get(line);
    };
    return show(values, post, host, variants).catch((error) => {
      if (!signal.aborted) for (const stale of ['.picture', '.figures']) $(stale, host).replaceChildren();
      throw error;
    });
  });
  const changed = ({ target }) => {
    prepare?.(form, target);
    keep();
    ask();
  };
  form.addEventListener('input', changed);
  form.addEventListener('change', (event) => { // when the user leaves a field
    const { target } = event;
    if (target.type !== 'number' || target.value === `${within(target)}`) return;
    target.value = within(target);
    changed(event);
  });
  return { name, form, show: ask, stop };
}

function keep() {
  const { name, form } = current;
  remember('learn', { lesson: name, ...Object.fromEntries([...form.elements].map((one) =>
    [one.name, one.type === 'number' ? within(one) : one.value])) });
}

// If `quiet`, no dialog asks for the API key, because the user has not asked for anything yet.
export async function open(section, parameters, quiet = true) {
  const variants = await variantList(section, quiet, () => open(section, parameters, false));
  if (!variants) return;
  const asked = parameters.get('lesson'), name = Object.hasOwn(LESSONS, asked) ? asked : current?.name || 'memory';
  const isNew = !current || parameters.size;
  if (isNew) {
    current?.stop();
    current = build(name, $('article', section), variants);
    for (const one of current.form.elements) {
      if (!parameters.has(one.name)) continue;
      one.value = parameters.get(one.name);
      if (one.selectedIndex < 0) one.selectedIndex = 0;
      if (one.type === 'number') one.value = within(one);
    }
    LESSONS[name].prepare?.(current.form);
  }
  const nav = $('nav', section), entries = Object.entries(LESSONS);
  if (!nav.firstChild) nav.append(...entries.map(([one, { title }], index) =>
    make('a', { href: '#learn?lesson=' + one }, `${index + 1}. ${title}`)));
  entries.forEach(([one], index) => nav.children[index].setAttribute('aria-current', one === name && 'page'));
  if (parameters.size || !isNew) keep();
  await current.show();
}

export function close() {
  current?.stop();
}
