// The API page: shows this server's /openapi.json, with requests that readers can send by a button.
import { $, call, code, copied, curl, elapsed, make, problemBox, quote, rich, table, wireKey } from './base.js';

const main = $('main'), shown_bytes_max = 20000;
let api;

// Follows the $ref of a node. Members beside the $ref override those of the target.
const resolve = ({ $ref, ...rest } = {}) =>
  ($ref ? { ...resolve($ref.slice(2).split('/').reduce((at, name) => at[name], api)), ...rest } : rest);

const block = (text) => make('pre', { tabindex: '0' }, code(text));
const fold = (title, ...content) => make('details', {}, make('summary', {}, title), ...content);
const grid = (caption, titles, rows) => table(caption, titles.map((title) => ({ title })), rows);

// Writes a schema as a short text. `seen` has the names of the schemas that contain this one, so a recursive schema
// ends with its own name.
function type(schema, seen = [], indent = '\n') {
  const name = schema.$ref?.split('/').pop();
  if (seen.includes(name)) return name;
  const is = resolve(schema), inner = (one, further = indent) => type(one, name ? [...seen, name] : seen, further);
  if ('const' in is) return JSON.stringify(is.const);
  const values = is.enum?.filter((value) => value !== is.not?.const);
  if (values) return values.map((value) => JSON.stringify(value)).join(' | ');
  if (is.anyOf) return is.anyOf.map((one) => inner(one)).join(' | ');
  if (is.items) return `[${inner(is.items)}, …]`;
  if (is.properties) return `{${Object.entries(is.properties).map(([member, one]) => {
    const { default: usual, description } = resolve(one), optional = is.required?.includes(member) ? '' : '?';
    return `${indent}  ${member}${optional}: ${inner(one, indent + '  ')}`
      + (usual === undefined ? '' : ` = ${JSON.stringify(usual)}`) + (description ? `  // ${description}` : '');
  }).join('')}${indent}}`;
  return [[is.type ?? 'any'].flat().join(' | '), ...'minimum' in is ? [`≥ ${is.minimum}`] : [],
    ...'maximum' in is ? [`≤ ${is.maximum}`] : []].join(', ');
}

// Shows the media types of a body or a reply, and the schema of JSON.
const media = (content = {}) => Object.entries(content).flatMap(([kind, { schema }]) => [
  make('p', {}, code(kind), ' ', rich(resolve(schema).description)), kind.includes('json') ? block(type(schema)) : '']);

// Indents JSON without parsing it, because parsing would round large integers.
function pretty(text) {
  let depth = 0;
  const line = () => '\n' + '  '.repeat(depth);
  return text.replace(/"(?:[^"\\]|\\.)*"|[{}]|,\s*(?="(?:[^"\\]|\\.)*"\s*:)/g, (token) => {
    depth += { '{': 1, '}': -1 }[token] ?? 0;
    return token === '{' ? token + line() : token === '}' ? line() + token : token[0] === ',' ? ',' + line() : token;
  });
}

// Shows a reply, with the headers that the API document names.
async function reply(response, headers = {}) {
  const bytes = await response.arrayBuffer(), kind = response.headers.get('Content-Type') ?? '';
  const lines = ['Content-Type', ...Object.keys(headers)].filter((name) => response.headers.has(name))
    .map((name) => `${name}: ${response.headers.get(name)}`);
  let text = /json|text|xml/.test(kind) ? new TextDecoder().decode(bytes.slice(0, shown_bytes_max)) : '';
  if (/json/.test(kind) && !text.includes('\n')) text = pretty(text);
  const more = text && bytes.byteLength <= shown_bytes_max ? '' : `… ${bytes.byteLength} bytes in all`;
  return [make('p', {}, make('strong', {}, `${response.status} ${response.statusText}`)),
    block(lines.join('\n')), block(text + more)];
}

// Makes a form that sends a request, a curl command for this request, and a place for the reply.
function form(path, method, parameters, { requestBody, responses }) {
  const choice = (names) => names.length > 0 && make('select', {}, ...names.map((name) => make('option', {}, name)));
  const inputs = parameters.filter((one) => one.in === 'path')
    .map(({ name, example }) => [name, make('input', { value: example })]);
  const query = parameters.some((one) => one.in === 'query') && make('input', { placeholder: 'name=value&…' });
  const json = 'application/json', types = Object.keys(resolve(Object.values(responses)[0]).content ?? {});
  const accept = types.length > 1 && choice(types);
  if (accept && types.includes(json)) accept.value = json;
  const examples = requestBody?.content[json].examples ?? {}, example = choice(Object.keys(examples));
  const body = example && make('textarea', { rows: 3, spellcheck: 'false' });
  const line = make('div'), result = make('div', { role: 'status' });

  const request = () => {
    const named = (at, [name, input]) => at.replace(`{${name}}`, encodeURIComponent(input.value));
    const to = inputs.reduce(named, path).slice(1);
    return [(query?.value ? `${to}?${query.value}` : to) || '.', { method, any: true,
      ...(accept && { accept: accept.value }), ...(body && { type: json, body: body.value }) }];
  };
  const write = () => {
    const [to, { accept }] = request();
    line.replaceChildren(copied(curl(to, method !== (body ? 'POST' : 'GET') && '-X ' + method,
      accept && '-H ' + quote('Accept: ' + accept), body && '-H ' + quote('Content-Type: ' + json), body && '-d ' + quote(body.value)),
    `curl for ${method} ${path}`));
  };
  const fill = () => {
    if (body) body.value = JSON.stringify(Object.values(examples)[example.selectedIndex].value, null, 1)
      .replace(/(?<=[[{])\n *|\n *(?=[\]}])/g, '').replace(/\n */g, ' ').replace(/"(-?\d{16,})"/g, '$1');
    write();
  };
  let latest; // the last run; replies to earlier runs are dropped
  const run = async (event) => {
    event.preventDefault();
    const mine = latest = {};
    result.replaceChildren('Waiting for the server… ', elapsed());
    try {
      const response = await call(...request());
      const shown = await reply(response, resolve(responses[response.status]).headers);
      if (mine === latest) result.replaceChildren(...shown);
    } catch (error) {
      if (mine === latest) result.replaceChildren(problemBox(error));
    }
    write(); // the user may have entered a key meanwhile
  };
  fill();
  if (example) example.onchange = fill;
  const fields = [...inputs, ['Query', query], ['Accept', accept], ['Example', example]].filter((field) => field[1]);
  return make('form', { onsubmit: run, oninput: write, onchange: write },
    make('div', { class: 'row' }, ...fields.map(([title, control]) => make('label', {}, title, control)),
      make('button', { class: 'main' }, 'Run')),
    body ? make('label', {}, 'Body', body) : '', line, result);
}

function operation(path, name, shared = [], { operationId: id, summary, description, ...rest }) {
  const method = name.toUpperCase(), where = `${method} ${path}`;
  const parameters = [...shared, ...rest.parameters ?? []].map(resolve);
  const replies = Object.entries(rest.responses).map(([status, response]) => [status, resolve(response)]);
  return make('article', { id },
    make('h3', {}, make('a', { href: '#' + id }, code(where))),
    make('p', {}, rich(summary)), make('p', { class: 'note' }, rich(description)),
    form(path, method, parameters, rest),
    fold('Parameters', grid('Parameters of ' + where, ['Name', 'In', 'Type', 'Default', 'Meaning'],
      parameters.map(({ name, in: place, required, schema, description }) => [code(name),
        place + (required ? ', required' : ''), type(schema), resolve(schema).default,
        rich(description ?? resolve(schema).description)]))),
    rest.requestBody ? fold('Body', ...media(rest.requestBody.content)) : '',
    fold('Replies', grid('Replies of ' + where, ['Status', 'Headers', 'Meaning'],
      replies.map(([status, { headers = {}, description }]) => [status, Object.keys(headers).join(', '), rich(description)])),
    ...media(replies[0][1].content)));
}

function errors() {
  const rows = Object.values(api.components.responses).flatMap(({ content, description }) => {
    const { status, code: is } = content?.['application/problem+json']?.schema.properties ?? {};
    return status ? [[status.const, code(is.const ?? is.enum.join(', ')), description]] : [];
  });
  return make('article', { id: 'errors' }, make('h3', {}, 'Errors'),
    grid('The problem replies of all paths', ['Status', 'Code', 'Meaning'], rows));
}

async function show() {
  const text = await (await call('openapi.json')).text();
  api = JSON.parse(text.replace(/(?<=[[:,] *)-?\d{16,}(?=[\],} ])/g, '"$&"')); // JavaScript would round large integers
  const articles = Object.entries(api.paths).flatMap(([path, { parameters, ...operations }]) =>
    Object.entries(operations).map(([method, described]) => operation(path, method, parameters, described)));
  articles.push(errors());
  const links = articles.map(({ id, firstChild }) => make('a', { href: '#' + id }, firstChild.textContent));
  main.append(make('p', {}, 'Change a request and press Run to send it, or copy its line of curl. Programs read the same from ',
    make('a', { href: 'openapi.json' }, 'openapi.json'), '.'), make('p', {}, rich(api.info.description)), make('div', { class: 'docs' },
    make('nav', { 'aria-label': 'Contents' }, ...links), make('div', {}, ...articles)));
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

wireKey();
show().catch((error) => main.append(problemBox(error)));
