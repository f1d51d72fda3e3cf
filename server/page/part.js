// What Learn and the parts of Compare share: the list of variants, requests that follow a form, tables and charts.
import { $, callJson, chart, code, colour, elapsed, make, number, problemBox, table } from './base.js';

let known;

// Loads the server's variants, once. Returns null after a failure; the section then shows the reason and a button for
// again(). quiet: no dialog asks for the key.
export async function variantList(section, quiet, again) {
  const hint = $('.hint', section);
  try {
    known ||= (await callJson('v1/variants', undefined, { quiet })).variants;
    hint.replaceChildren();
    return known;
  } catch (error) {
    const key = error.status === 401;
    hint.replaceChildren(key ? 'This server needs an API key. ' : problemBox(error),
      make('button', { onclick: again }, key ? 'Enter the key' : 'Try again'));
    return null;
  }
}

export function options(select, values) {
  select.append(...[...new Set(values)].map((value) => make('option', {}, value)));
}

// Lets a form ask the server when its button is pressed or, without a button, when show() is called. work(post, signal)
// does this and returns the text to show. post(body, what, place) sends a benchmark. While it runs, `what` is shown
// after the form or after `place`. A new request cancels the one before.
export function asker(form, work) {
  const button = $('button', form);
  const said = make('p', { role: 'status' });
  let now = null;
  form.after(said);
  async function show() {
    now?.abort();
    now = new AbortController();
    const { signal } = now;
    try {
      if (!button) await new Promise((resolve) => setTimeout(resolve, 40)); // waits while the user types
      signal.throwIfAborted();
      said.textContent = await work((body, what, place = form) => {
        if (place.nextSibling !== said) place.after(said);
        const cancel = make('button', { onclick: () => now.abort() }, 'Cancel');
        if (what) said.replaceChildren(what, '… ', elapsed(), ' ', cancel);
        return callJson('v1/benchmark', body, { signal });
      }, signal);
    } catch (error) {
      const waits = error.code === 'busy' && !button && !signal.aborted; // another benchmark runs
      if (waits) said.textContent = 'The server is busy; this is tried again…';
      else if (!signal.aborted) said.replaceChildren(problemBox(error));
      else if (button) said.textContent = 'Cancelled.';
      if (waits) setTimeout(() => signal.aborted || show(), 1000);
    }
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (button && !$('button', said)) show();
  });
  return { show, stop: () => now?.abort() };
}

export function text(value) {
  if (typeof value !== 'number')
    return JSON.stringify(value ?? '–').replace(/["{}[\]]/g, '').replace(/[,:]/g, '$& ').replaceAll('_', ' ');
  return value && value < 1e-3 ? value.toExponential(2) : number(value, Number.isInteger(value) ? 15 : 4);
}

// Shows a source with line numbers. classOf(line) is the class of a line to mark, or null.
export function listing(source, classOf = () => null) {
  const shown = code('');
  shown.className = 'listing';
  shown.append(...source.replace(/\n$/, '').split('\n').map((line) =>
    make(classOf(line) ? 'mark' : 'span', { class: classOf(line) }, line + '\n')));
  return shown;
}

// columns: names of members of the rows, or [title, read(row)]. Columns without any value are left out.
export function figures(part, caption, rows, ...columns) {
  const shown = columns.map((column) => [column].flat()).map(([title, read = (row) => row[title] ?? null]) =>
    ({ title: text(title), cells: rows.map((row) => read(row) ?? null) }))
    .filter(({ cells }) => cells.some((cell) => cell !== null));
  $('.figures', part).replaceChildren(table(caption,
    shown.map(({ title, cells }) => ({ title, number: cells.some((cell) => typeof cell === 'number') })),
    rows.map((_, row) => shown.map(({ cells: { [row]: cell } }) => (typeof cell === 'string' ? cell : text(cell))))));
}

// Draws datasets by Chart.js, each in its colour. axis: options of both axes.
export function plot(part, type, labels, sets, x, y, { axis, ...more } = {}) {
  const titled = (title) => ({ title: { display: true, text: title }, ...axis });
  chart($('.drawn', part), `${y} by ${x}`, () => ({ type, data: { labels, datasets: sets.map((set, index) => {
    const own = colour(`series-${index % 6 + 1}`);
    return { borderColor: own, backgroundColor: own, ...set };
  }) }, options: { scales: { x: titled(x), y: titled(y) }, ...more } }));
}
