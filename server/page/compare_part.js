// What the parts of Compare share: forms, requests that follow them, tables and charts.
import { $, callJson, chart, colour, make, number, problemBox, table } from './base.js';

export function options(select, values, chosen) {
  select.append(...[...new Set(values)].map((value) => make('option', { value, selected: value === chosen }, value)));
}

// Sends the controls of a form, which are named as the members of the request, and `more`.
export function benchmark(form, more, signal) {
  const body = {};
  for (const { name, value, type, checked } of form.elements)
    if (name) body[name] = type === 'checkbox' ? checked : /^\d+$/.test(value) ? +value : value;
  return callJson('v1/benchmark', { ...body, ...more }, { signal });
}

// Lets a form ask the server by work(signal): when its button is pressed, which then cancels, or without a button by ask().
// A new request ends the one before it.
export function asker(form, work) {
  const button = $('button', form);
  const title = button?.textContent;
  const said = make('div', { role: 'status' });
  let now = null;
  form.after(said);
  function stop(problem) {
    now?.abort();
    now = null;
    said.replaceChildren(problem ? problemBox(problem) : '');
    if (button) button.textContent = title;
  }
  async function ask(delay = 40) {
    if (!form.reportValidity()) return;
    stop();
    const mine = now = new AbortController();
    if (button) [button.textContent, said.textContent] = ['Cancel', 'Running…'];
    await new Promise((resolve) => setTimeout(resolve, delay));
    let problem;
    if (mine === now) await work(mine.signal).catch((error) => { problem = error; });
    if (mine !== now) return;
    stop(problem);
    if (!button && problem?.code === 'busy') ask(1000); // a benchmark runs
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (now) stop();
    else if (button) ask(0);
  });
  return { ask, stop: () => stop() };
}

const text = (value) => typeof value !== 'number' ? value ?? '–' : Number.isInteger(value) ? number(value, 15)
  : Math.abs(value) < 1e-3 ? value.toExponential(2) : number(value, 4);

// columns: { title: (row) => value }.
export function figures(part, caption, rows, columns) {
  const cells = rows.map((row) => Object.values(columns).map((read) => read(row)));
  $('.figures', part).replaceChildren(table(caption, Object.keys(columns).map((title, column) =>
    ({ title, number: cells.some((row) => typeof row[column] === 'number') })), cells.map((row) => row.map(text))));
}

// sets: as Chart.js has them, each in a colour of its own. x, y: the titles of the axes.
export function plot(part, caption, type, labels, sets, x, y, { axis, scales, ...more } = {}) {
  const titled = (title) => ({ title: { display: true, text: title }, ...axis });
  chart($('.drawn', part), caption, () => ({
    type,
    data: { labels, datasets: sets.map((set, index) => {
      const own = colour(set.colour || `series-${index % 6 + 1}`);
      return { borderColor: own, backgroundColor: own, ...set };
    }) },
    options: { ...more, scales: { x: titled(x), y: titled(y), ...scales } },
  }));
}
