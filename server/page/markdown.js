// Draws the Markdown of docs/lessons: headings, paragraphs, lists, tables, code and <details>.
import { code, copied, make, rich, table } from './base.js';

// Each line matches one kind of block. A paragraph ends where another block begins.
const BLOCK = new RegExp([/```(?<language>\w*)\n(?<lines>[^]*?)\n```/, /(?<level>#+) (?<title>.*)/, /(?<table>(?:\|.*\n?)+)/,
  /(?<items>(?:(?:-|\d\.) .*\n?(?: .*\n?)*)+)/, /<details><summary>(?<summary>.*)<\/summary>(?<inner>[^]*?)<\/details>/,
  /(?<text>.+(?:\n(?!```|[#|<]|- |\d\. ).+)*)/].map(({ source }) => '^' + source).join('|'), 'gm');

function grid(text, inline) {
  const [head, , ...rows] = text.trim().split('\n').map((row) => row.slice(1, -1).split('|').map((cell) => cell.trim()));
  return table('', head.map((title) => ({ title: title.replace(/[*`]/g, '') })), rows.map((cells) => cells.map((cell) => cell && inline(cell))));
}

// Returns the nodes of a text. link(address, node) makes a link. Headings have the ids at-TITLE, with TITLE as in
// GitHub's anchors.
export function markdown(text, link) {
  const inline = (one) => rich(one.trim().replace(/\n */g, ' '), link);
  return [...text.matchAll(BLOCK)].map(({ groups: { language, lines, level, title, table: cells, items, summary, inner, text: plain } }) => {
    if (lines) return language === 'sh' ? copied(lines, 'the commands') : make('pre', { tabindex: '0' }, code(lines));
    if (level) return make('h' + (level.length + 3),
      { id: 'at-' + title.toLowerCase().replace(/[^\w\- ]/g, '').replaceAll(' ', '-') }, inline(title));
    if (cells) return grid(cells, inline);
    if (items) return make(items[0] === '-' ? 'ul' : 'ol', {},
      ...items.split(/^(?:-|\d\.) /m).slice(1).map((item) => make('li', {}, inline(item))));
    if (summary) return make('details', {}, make('summary', {}, summary), ...markdown(inner, link));
    return make('p', {}, inline(plain));
  });
}
