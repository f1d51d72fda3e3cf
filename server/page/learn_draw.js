// The pictures of Learn: squares in rows (banks, sectors, warps, turns), and the matrices of a product with their tiles.
import { $, make } from './base.js';

// The word that each lane accesses, as gpu/lab/access.h defines it.
export const PATTERNS = {
  stride: (lane, stride) => stride * lane,
  linear: (lane) => lane,
  permuted: (lane) => (lane & 16) | ((7 * lane + 3) & 15),
  same_bank: (lane) => 32 * lane,
  broadcast: () => 0,
};
const all = Array.from({ length: 32 }, (_, index) => index);
export const lanesOf = (pattern, stride) => all.map((lane) => PATTERNS[pattern](lane, stride));

const draw = (part, caption, ...pictures) =>
  $('.picture', part).replaceChildren(make('figure', {}, make('figcaption', {}, caption), ...pictures));

// rows: [title(first), squares]. A square is { text, kind, label, edge }, where edge names its thick sides. Columns are
// numbered from 0. Each 16 columns have a table of their own, so a phone can show the tables below each other. `first`
// is the first column of a table.
export function squares(part, caption, corner, rows) {
  const cell = ({ text = '', kind, label, edge }) => make('td', { class: [kind, edge].filter(Boolean).join(' ') || null, title: label }, `${text}`);
  const isIdle = (cells) => cells.every(({ kind, text = '' }) => !kind && text === ''); // phones hide such a row
  const firsts = rows[0][1].map((_, column) => column).filter((column) => column % 16 === 0);
  draw(part, caption, make('div', { class: 'squares', tabindex: '0', role: 'group', 'aria-label': caption }, ...firsts.map((first) => {
    const ours = rows.map(([title, cells]) => [title(first), cells.slice(first, first + 16)]);
    const isUnused = ours.every(([, cells]) => isIdle(cells));
    return make('table', { class: isUnused && 'unused' }, isUnused ?
      make('caption', {}, `${corner}s ${first} to ${first + 15}: no word read`) : '', make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, corner),
      ...ours[0][1].map((_, column) => make('th', { scope: 'col' }, `${first + column}`)))),
    make('tbody', {}, ...ours.map(([title, cells]) => make('tr', { class: isIdle(cells) && 'idle' },
      make('th', { scope: 'row' }, `${title}`), ...cells.map(cell)))));
  })));
}

// Draws the memory that lanes of a warp access, in rows of 32 units of `bytes` bytes. places: { lane, unit, kind } for
// each unit of each lane. rest(unit) is the square of a unit that no lane accesses. Rows without accesses are left out.
function memory(part, caption, corner, bytes, places, rest, last = [], edge = () => null) {
  const used = [...new Set(places.map(({ unit }) => Math.floor(unit / 32)))].sort((one, other) => one - other);
  squares(part, caption, corner, [...used.map((row) => [(first) => (32 * row + first) * bytes, all.map((column) => {
    const here = places.filter(({ unit }) => unit === 32 * row + column);
    if (!here.length) return { edge: edge(column), ...rest(32 * row + column) };
    const lanes = [...new Set(here.map(({ lane }) => lane))];
    return { text: lanes[0] + (lanes[1] ? '+' : ''), kind: here[0].kind, edge: edge(column), label: 'lane ' + lanes.join(', ') };
  })]), ...last]);
}

// Draws global memory: lines of 32 words of 4 bytes, in sectors of 8 words. The last argument is the server's
// prediction.
export function sectors(part, { stride, offset = 0, word_bytes: bytes }) {
  const wide = bytes / 4, units = all.map((lane) => (lane * stride + offset) * wide), kind = 'one';
  const places = units.flatMap((unit, lane) => all.slice(0, wide).map((more) => ({ lane, unit: unit + more, kind })));
  const moved = new Set(places.map(({ unit }) => unit >> 3));
  memory(part, 'Lines of global memory, in words of 4 bytes. At the left: the first byte of a row', 'word', 4, places,
    (unit) => ({ kind: moved.has(unit >> 3) && 'moved' }), [], (column) => ({ 0: 'left', 7: 'right' })[column % 8]);
}

// Draws shared memory: the word of each lane in its bank. The last argument is the server's prediction for these words.
export function access(part, words, { banks, word_bytes: bytes, bank_bytes: bankBytes, padded }) {
  const active = all.filter((lane) => (banks[lane] ?? null) !== null), isWide = bytes > bankBytes;
  const unit = (lane) => Math.floor((words[lane] + (padded ? words[lane] >> 5 : 0)) * bytes / bankBytes);
  // If words are wider than banks, each half of the warp has its own passes.
  const isRival = (lane, other) => banks[lane] === banks[other] && !(isWide && lane >> 4 !== other >> 4);
  const degree = (lane) => new Set(active.filter((other) => isRival(lane, other)).map(unit)).size;
  const served = [Array(32).fill(0), Array(32).fill(0)]; // one for each half of the warp; the first has all lanes if words are not wider than banks
  const places = active.flatMap((lane) => all.slice(0, isWide ? 2 : 1).map((half) => {
    const bank = banks[lane] + half, count = degree(lane);
    const by = served[isWide ? lane >> 4 : 0];
    by[bank] = Math.max(by[bank], count);
    return { lane, unit: unit(lane) - unit(lane) % 32 + bank, kind: count > 7 ? 'many' : count > 1 ? 'few' : 'one' };
  }));
  const isGap = (one) => padded && Math.floor(one * bankBytes / bytes) % 33 === 32;
  const counts = (title, by) => [() => title, by.map((count) => ({ text: count || '' }))];
  memory(part, 'A column for each bank of shared memory; under it, how many words it serves one after another. At the left: the ' +
    'first byte of a row. 3+: lane 3 and ' +
    'others read this word. Orange: 2 to 7 words in the bank; red: more' + (isWide ? '. Each half of the warp has its own passes' : ''),
    'bank', bankBytes, places, (one) => (isGap(one) ? { text: '·', label: 'padding' } : {}),
    isWide ? [counts('lanes <16', served[0]), counts('lanes ≥16', served[1])] : [counts('words', served[0])]);
}

// Draws A, B and C of a product, with the T×T tiles that a block of C uses in one step. A tile may reach past its
// matrix, by less than T.
export function matrices(part, { m, k, n }, T, { row, column, step }) {
  const font = Math.max(k + n + 2 * T, .8 * (k + m + 2 * T)) / 22, gap = Math.max(T, 1.5 * font);
  const range = (at, length) => `${at * T} to ${Math.min((at + 1) * T, length) - 1}`;
  const parts = [['A m×k', 0, k + gap, k, m, step, row], ['B k×n', k + gap, 0, n, k, column, step],
    ['C m×n', k + gap, k + gap, n, m, column, row]];
  const box = (kind, x, y, width, height) => `<rect class="${kind}" x="${x}" y="${y}" width="${width}" height="${height}"/>`;
  const figure = make('div');
  figure.innerHTML = `<svg viewBox="-1 ${-1.5 * font} ${k + gap + n + T + 2} ${k + gap + m + gap + 2 * font}" role="img"
    aria-label="A, B and C, with the tiles of block (${row}, ${column}) at step ${step}">
    <pattern id="zeros" width="${T / 4}" height="${T / 4}" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
    <path d="M0 0V${T / 4}" stroke-width="${T / 8}"/></pattern>` +
    parts.map(([name, x, y, width, height, right, down]) => {
      const isC = name[0] === 'C', left = x + right * T, top = y + down * T;
      const wide = Math.min(T, width - right * T), high = Math.min(T, height - down * T);
      return box('whole', x, y, width, height) + (isC ? '' :
        (name[0] === 'A' ? box('band', x, top, width, high) : box('band', left, y, wide, height)) +
        `<rect class="zeros" fill="url(#zeros)" x="${left}" y="${top}" width="${T}" height="${T}"/>`) +
        box('tile', left, top, wide, high) +
        `<text x="${x}" y="${isC ? y + height + 1.2 * font : y - font / 3}" font-size="${font}">${name}</text>`;
    }).join('') + '</svg>';
  draw(part, `Block (${row}, ${column}) computes the blue tile of C. At step ${step} it copies the blue tiles of A and B to shared ` +
    `memory: rows ${range(row, m)} and columns ${range(step, k)} of A, rows ${range(step, k)} and columns ${range(column, n)} of B.` +
    ([[row, m], [step, k], [column, n]].some(([at, length]) => (at + 1) * T > length) ?
      ' What is hatched lies past an edge: there the tile has zeros.' : ''), figure.firstChild);
}
