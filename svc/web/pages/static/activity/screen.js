// The activity screen: what the person did, and what others did to what is theirs, newest first.
import { all, call } from '../frame/api.js';
import { element, find, findAll, icon, replace, setAttribute, empty } from '../frame/dom.js';
import { skeleton } from '../frame/frame.js';
import { setCommand } from '../frame/foot.js';
import { refused } from '../frame/notices.js';
import { delayed } from '../frame/turns.js';
import { isVisible, openPage, startPage } from '../screen/page.js';
import { cell, tableHead } from '../parts/tables.js';
import { ending, sentence, through } from './sentences.js';
import { counted, time } from '../frame/format.js';

const PAGE = 100;
const HOUR_MS = 3_600_000,
  TIMES = { '': ['Any time'], hour: ['Last hour', 1], day: ['Last 24 hours', 24], week: ['Last 7 days', 168],
    month: ['Last 30 days', 720] };
const KINDS = { '': 'All', workspace: 'Workspaces', fs: 'Files', template: 'Templates', image: 'Images',
  auth: 'Sign-ins', token: 'Tokens' };

// `rows` has an entry for each action, begun and ended; `ids` are those of all rows that were read.
const known = { rows: new Map(), ids: new Set(), total: 0, read: 0, fresh: 0, workspaces: [] };
const asked = { kind: '', workspace: '', text: '', time: '' };
const screen = find('#screen');
let me = '', openedAt = Date.now();

// ---- what is asked for: in the address, and in the command ----

function query() {
  const pairs = { action: asked.kind, q: asked.text.trim() || asked.workspace,
    since: asked.time && new Date(openedAt - TIMES[asked.time][1] * HOUR_MS).toISOString() };
  return Object.entries(pairs).filter(([, value]) => value).map(([name, value]) =>
    `&${name}=${encodeURIComponent(value)}`
  ).join('');
}

function readAddress() {
  const found = new URLSearchParams(location.search);
  for (const name of Object.keys(asked)) asked[name] = found.get(name) ?? '';
  if (!(asked.kind in KINDS)) asked.kind = '';
  if (!(asked.time in TIMES)) asked.time = '';
}

function writeAddress() {
  const found = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
  history.replaceState(null, '', `/activity${found.size ? `?${found}` : ''}`);
  setCommand(['api', 'GET', `/api/audit?limit=200${query()}`]);
}

// ---- reading ----

const readPage = (offset, limit, options) =>
  call('GET', `/api/audit?limit=${limit}&offset=${offset}${query()}`, options);

// Begun and ended are one entry: the row of the end says it, from the row of the begin it has how it was asked.
function take(items) {
  for (const row of items) {
    if (known.ids.has(row.id)) continue;
    known.ids.add(row.id);
    const key = `${row.request_id} ${row.action} ${row.target}`;
    const before = row.request_id ? known.rows.get(key) : null;
    if (!before) known.rows.set(row.request_id ? key : `row ${row.id}`, row);
    else if (row.outcome === 'begun')
      Object.assign(before, { via: row.via, address: row.address, detail: { ...row.detail, ...before.detail } });
    else if (before.outcome === 'begun')
      known.rows.set(key, { ...row, via: before.via, address: before.address,
        detail: { ...before.detail, ...row.detail } });
    else known.rows.set(`row ${row.id}`, row);
  }
}

// What is new is counted, and comes when it is asked for: nothing moves by itself.
async function read({ background }) {
  const isCount = background && isVisible();
  const { total, items } = await readPage(0, isCount ? 1 : PAGE, { background });
  return { total, items: isCount ? null : items };
}

function took({ total, items }) {
  if (!items) {
    known.fresh = Math.max(0, total - known.total);
    return;
  }
  Object.assign(known, { rows: new Map(), ids: new Set(), total, read: items.length, fresh: 0 });
  take(items);
}

function begin() {
  writeAddress();
  return openPage();
}

// Older ones; rows that have come meanwhile move the pages, and what was read already is left out.
let isReading = false;

async function older() {
  if (isReading || known.read >= known.total) return;
  isReading = true;
  const { rows } = known, button = find('[data-key=older]');
  setAttribute(button, 'aria-busy', true);
  try {
    const page = await readPage(known.read + known.fresh, PAGE, { background: true });
    if (rows !== known.rows) return;
    known.read += page.items.length;
    known.total = page.total - known.fresh;
    if (page.items.length === 0) known.read = known.total;
    take(page.items);
    showRows();
  } catch (error) {
    if (rows === known.rows && error.status !== 401)
      replace(find('[data-end]'), refused(error, { what: 'Older ones could not be read.', retry: () => older() }));
  } finally {
    isReading = false;
    setAttribute(find('[data-key=older]'), 'aria-busy', null);
  }
}

// ---- showing ----

function show({ isNew }) {
  if (isNew) showAll();
  else showFresh();
}

const unready = () => setAttribute(screen, 'aria-busy', null);

function showAll() {
  unready();
  if (known.total === 0) {
    showEmpty();
    return;
  }
  screen.replaceChildren(
    element('section.panel', { 'aria-label': 'Activity' },
      element('table.table.dense.fold.log-rows', { 'aria-label': 'Activity' }, head(), element('tbody')),
      element('footer', element('span.muted.small.num', { 'data-count': true }),
        element('div.row.push', { 'data-end': true })))
  );
  showRows();
  showFresh();
}

const head = () => tableHead(['When', 'What', 'How it ended', 'Through', 'Request']);

function rowOf(row) {
  const [kind, text] = ending(row);
  return element('tr', { tabindex: '-1', 'data-id': row.id }, cell(null, 'muted small num nw', time(row.at, 'ago')),
    cell(null, 'ref', element('span', { title: row.action }, sentence(row, me))),
    cell('Ended', '', element('span', { class: `state ${kind}`, title: row.outcome }, text)),
    cell('Through', 'muted small', through(row)), cell('Request', 'muted tiny mono ref', row.request_id));
}

// Rows that are there stay; older ones come below them.
function showRows() {
  const body = find('tbody', screen);
  const old = new Map(findAll('tr', body).map(node => [node.dataset.id, node]));
  for (const row of known.rows.values()) if (!old.has(String(row.id))) body.append(rowOf(row));
  const hasMore = known.read < known.total;
  find('[data-count]').textContent = hasMore
    ? `${body.children.length} shown, of ${known.total} rows ${known.read} are read`
    : counted(body.children.length, 'row');
  const button = element('button.btn.sm', { key: 'older', click: older }, 'Show older ones');
  replace(find('[data-end]'), ...(hasMore ? [button] : []));
  watcher.disconnect();
  if (hasMore) watcher.observe(button);
}

const watcher = new IntersectionObserver(ones => {
  if (ones.some(one => one.isIntersecting)) older();
}, { rootMargin: '400px' });

function showFresh() {
  const place = find('[data-fresh]');
  place.hidden = known.fresh === 0;
  if (!known.fresh) {
    place.replaceChildren();
    return;
  }
  const text = `${counted(known.fresh, 'row is new', 'rows are new')}. `;
  if (place.firstChild?.textContent === text) return;
  replace(place, element('span', text),
    element('button.btn.sm', { key: 'fresh', click: () => begin().then(() => scrollTo(0, 0)) }, 'Show them'));
}

function showEmpty() {
  const isFiltered = Object.values(asked).some(Boolean);
  screen.replaceChildren(
    empty(isFiltered ? 'Nothing like that' : 'Nothing yet', element('p', isFiltered
      ? 'No row of your activity matches.'
      : 'What you do here and on the command line is listed here, and what administrators do to what is yours.'),
      isFiltered && element('button.btn', { click: () => {
        for (const name of Object.keys(asked))
          asked[name] = '';
        showFilters();
        begin();
      } }, 'Show all'))
  );
}

function loading() {
  if (find('tbody tr[data-id]', screen)) {
    setAttribute(screen, 'aria-busy', true);
    return null;
  }
  const row = () =>
    element('tr.plain', [['1'], ['4'], ['2'], ['2'], ['2']].map(widths => element('td', skeleton(...widths))));
  return element('section.panel', { 'aria-busy': true, 'aria-label': 'Loading your activity' },
    element('table.table.dense.fold', head(), element('tbody', Array.from({ length: 10 }, row))));
}

// ---- filters ----

const beginSoon = delayed(begin, 250);

const workspaceOptions = () =>
  known.workspaces.map(({ id, name }) => element('option', { value: id, selected: id === asked.workspace }, name));

function showFilters() {
  const search = element('input.input', { type: 'search', placeholder: 'Action, target, address',
    'aria-label': 'Search', 'data-search': true, key: 'search', value: asked.text, on: { input: event => {
      asked.text = event.target.value;
      writeAddress();
      beginSoon();
    } } });
  const kind = ([name, title]) =>
    element('button', { 'aria-pressed': String(asked.kind === name), 'data-kind': name, key: `kind-${name}`,
      click: () => {
        asked.kind = name;
        showFilters();
        begin();
      } }, title);
  const select = element('select.input.auto', { 'aria-label': 'Workspace', key: 'workspace', on: { change: event => {
    asked.workspace = event.target.value;
    begin();
  } } }, element('option', { value: '' }, 'Any workspace'), workspaceOptions());
  const period = element('select.input.auto', { 'aria-label': 'Time', key: 'time', on: { change: event => {
    asked.time = event.target.value;
    openedAt = Date.now();
    begin();
  } } },
    Object.entries(TIMES).map(([name, [title]]) =>
      element('option', { value: name, selected: name === asked.time }, title)
    ));
  replace(find('[data-filters]'), element('div.search', icon('search'), search, element('kbd', '/')),
    element('div.seg', { role: 'group', 'aria-label': 'What' }, Object.entries(KINDS).map(kind)), select, period);
}

async function readWorkspaces() {
  try {
    known.workspaces = await all('/api/workspaces?sort=name', { background: true });
    find('[data-key=workspace]').append(...workspaceOptions());
  } catch { /* the other filters are there */ }
}

readAddress();
showFilters();
await startPage({ read, took, show, loading, unready, later: readWorkspaces, delayMs: 800,
  failed: 'Your activity could not be read.', wants: event => event.type !== 'operation.progress', may: ({ user }) => {
    me = user.name;
    writeAddress(); // the frame has put the shell's command there
    return true;
  } });
