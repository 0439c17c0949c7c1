// The workspaces screen: headroom, and a row for each workspace, live.
import { all, call, session } from '../frame/api.js';
import { command, element, find, findAll, icon, replace, setAttribute } from '../frame/dom.js';
import { onEvent, onGap, onState } from '../frame/events.js';
import { afterAMoment, ask, goLive, isAway, isRead, skeleton, startFrame } from '../frame/frame.js';
import { DEEDS, QUESTIONS } from './deeds.js';
import { headroom, headroomBones } from './headroom.js';
import { setLine, toast } from '../frame/line.js';
import { countDown, refused } from '../frame/notices.js';
import { needsYou, rowOf } from './row.js';

const FILTERS = { all: 'All', running: 'Running', stopped: 'Stopped', need: 'Need you' };
const TESTS = {
  all: () => true,
  running: workspace => ['running', 'starting', 'stopping'].includes(workspace.status),
  stopped: workspace => ['stopped', 'failed', 'creating'].includes(workspace.status),
  need: workspace => needsYou(workspace, known.live.get(workspace.id)),
};

// What is known, and what is shown of it: rows keep their places until the person looks for others.
const known = { workspaces: new Map(), live: new Map(), setups: new Map(), capacity: null, isRead: false };
const shown = { ids: [], filter: 'all', text: '', descending: false };
const busy = new Map(); // workspace id -> what a button is doing
let stopCountDown = () => {}, refreshing = null, wanted = false;

// ---- reading ----

async function readAll({ background = false } = {}) {
  const [items, capacity] = await Promise.allSettled([
    all('/api/workspaces?sort=name', { background }), call('GET', '/api/workspaces/capacity', { background }),
  ]);
  known.capacity = capacity.value ?? known.capacity;
  const failed = [items, capacity].find(part => part.reason);
  if (failed) throw failed.reason;
  known.workspaces = new Map(items.value.map(item => [item.id, item]));
  known.isRead = true;
  isRead();
}

// What no row waits for: the launchers' states, and set-ups whose workspace is not there yet.
async function readMore() {
  const options = { background: true };
  const [live, operations] = await Promise.all([
    call('GET', '/api/usage/workspaces', options), call('GET', '/api/operations?kind=setup&status=queued,running', options),
  ]);
  known.live = new Map(live.items.map(item => [item.id, item]));
  known.setups = new Map(operations.items.map(item => [item.id, item]));
}

// Read anew and show it; calls that come meanwhile are one more reading.
async function refresh() {
  if (refreshing) { wanted = true; return refreshing; }
  refreshing = (async () => {
    do {
      wanted = false;
      try {
        await readAll({ background: true });
        await readMore();
        showAll();
      } catch (error) {
        if (!known.isRead) showError(error);
      }
    } while (wanted);
  })();
  await refreshing;
  refreshing = null;
}

let soon = null;
function refreshSoon() {
  clearTimeout(soon);
  soon = setTimeout(refresh, 100);
}

// ---- showing ----

const place = find('#screen');

function showAll() {
  stopCountDown();
  setAttribute(place, 'aria-busy', null);
  replace(find('[data-room]'), headroom(known.capacity));
  if (known.workspaces.size === 0 && known.setups.size === 0) { showEmpty(); return; }
  if (!find('[data-list]')) { place.replaceChildren(list()); choose(); }
  keepPlaces();
  showRows();
  showCounts();
}

function showEmpty() {
  showCounts();
  place.replaceChildren(element('section', { class: 'empty dash' },
    element('h2', {}, 'No workspace yet'),
    element('p', {}, 'A workspace is a container of your own with the files of ', element('span', { class: 'mono' }, 'work'), ' at ', element('span', { class: 'mono' }, '/work'),
      '. Choose a template; its image is pulled once, into your store.'),
    element('a', { class: 'btn', href: '/new', 'data-cmd': 'svc ws setup --template TEMPLATE --name NAME' }, icon('plus'), 'New workspace'),
    command('svc template list')));
}

function showError(error) {
  setAttribute(place, 'aria-busy', null);
  if (known.capacity) replace(find('[data-room]'), headroom(known.capacity)); else find('[data-room]').replaceChildren();
  const forbidden = error.status === 403;
  const notice = refused(error, {
    what: forbidden ? 'There are no workspaces here for you.' : 'Your workspaces could not be read.',
    retry: error.retryable ? begin : null, answers: false,
  });
  place.replaceChildren(notice);
  const counter = find('[data-countdown]', notice);
  if (counter) stopCountDown = countDown(counter, error.retryAfter ?? 4, begin);
}

function showLoading() {
  setAttribute(place, 'aria-busy', 'true');
  find('[data-room]').replaceChildren(headroomBones());
  const cells = [['3', '2'], ['2', '3'], ['1'], ['3'], ['2'], []];
  const row = () => element('tr', { class: 'plain', role: 'row' }, cells.map(widths => element('td', { role: 'cell' }, widths.length > 0 && element('div', { class: 'stack-2' }, skeleton(...widths)))));
  const waiting = filters();
  waiting.inert = true;
  place.replaceChildren(element('section', { class: 'stack-2', 'aria-busy': 'true', 'aria-label': 'Loading workspaces' }, waiting,
    element('div', { class: 'panel' },
      element('table', { class: 'table fold', role: 'table', 'aria-label': 'Workspaces' }, head(), element('tbody', { role: 'rowgroup' }, row(), row(), row(), row())))));
}

function head() {
  const titles = [['Name', 'w-name'], ['State', 'w-state'], ['GPUs'], ['Size'], ['Apps']];
  const cell = ([title, kind]) => element('th', { role: 'columnheader', scope: 'col', class: kind, 'aria-sort': title === 'Name' ? shown.descending ? 'descending' : 'ascending' : null },
    title === 'Name' ? element('button', { type: 'button', 'data-key': 'sort', on: { click: sort } }, title) : title);
  return element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, titles.map(cell),
    element('th', { role: 'columnheader', scope: 'col' }, element('span', { class: 'vh' }, 'Actions'))));
}

function filters() {
  const search = element('input', { class: 'input', type: 'search', placeholder: 'Name or template', 'aria-label': 'Search workspaces', 'data-search': true, 'data-key': 'search', value: shown.text, on: { input: event => { shown.text = event.target.value; choose(); showRows(); setLine(lineOf()); } } });
  const filter = ([name, title]) => element('button', { type: 'button', 'data-filter': name, 'data-key': `filter-${name}`, 'aria-pressed': String(shown.filter === name), on: { click: () => { shown.filter = name; choose(); showRows(); showCounts(); } } }, title, ' ', element('span', { class: 'muted num' }));
  return element('div', { class: 'filters' },
    element('div', { class: 'search' }, icon('search'), search, element('kbd', {}, '/')),
    element('div', { class: 'seg', role: 'group', 'aria-label': 'Show' }, Object.entries(FILTERS).map(filter)));
}

function list() {
  return element('section', { class: 'stack-2', 'aria-labelledby': 'list-h', 'data-list': true },
    element('h2', { class: 'vh', id: 'list-h' }, 'Your workspaces'),
    filters(),
    element('div', { 'data-answer': true, hidden: true }),
    element('div', { class: 'panel' }, element('table', { class: 'table fold', role: 'table', 'aria-label': 'Workspaces' }, head(), element('tbody', { role: 'rowgroup' })),
      element('p', { class: 'body muted', 'data-none': true, hidden: true }, 'None of your workspaces is like that.')));
}

function sort() {
  shown.descending = !shown.descending;
  choose();
  replace(find('table thead'), ...head().childNodes);
  showRows();
}

const saysText = parts => parts.some(part => (part ?? '').toLowerCase().includes(shown.text.trim().toLowerCase()));

// Choose the rows: when the person filters, searches or sorts, and never otherwise.
function choose() {
  const matches = ({ name, display_name: title, template }) => saysText([name, title, template.name]);
  const chosen = [...known.workspaces.values()].filter(workspace => TESTS[shown.filter](workspace) && matches(workspace));
  chosen.sort((a, b) => (a.name < b.name ? -1 : 1) * (shown.descending ? -1 : 1));
  shown.ids = chosen.map(workspace => workspace.id);
  shown.known = new Set(known.workspaces.keys());
}

// Rows stay; what is gone goes, and what is new comes at the end.
function keepPlaces() {
  const fresh = [...known.workspaces.keys()].filter(id => !shown.known.has(id));
  shown.ids = [...shown.ids.filter(id => known.workspaces.has(id)), ...fresh];
  shown.known = new Set(known.workspaces.keys());
}

// While a button is held down its row is not replaced: the press would be lost.
let isHeld = false, isOwed = false;
document.addEventListener('pointerdown', () => { isHeld = true; });
for (const name of ['pointerup', 'pointercancel']) document.addEventListener(name, () => setTimeout(letGo));

function letGo() {
  isHeld = false;
  if (isOwed) showRows();
}

function showRows() {
  const body = find('[data-list] tbody');
  isOwed = isHeld;
  if (!body || isHeld) return;
  const rows = shown.ids.map(id => known.workspaces.get(id)).filter(Boolean).map(workspace => rowFor(workspace));
  const names = new Set([...known.workspaces.values()].map(workspace => workspace.name));
  const isWanted = operation => !names.has(operation.subject.name) && saysText([operation.subject.name, operation.template?.name]);
  const setups = shown.filter === 'all' ? [...known.setups.values()].filter(isWanted) : [];
  const old = new Map(findAll('tr', body).map(row => [row.dataset.id, row]));
  const next = [...rows, ...setups.map(operation => rowOf({ setup: operation }, { act, isAway: isAway() }))];
  // Rows that say the same stay the very elements they were: a menu stays open, a pointer stays over its button.
  arrange(body, next.map(row => takeOver(old.get(row.dataset.id), row)));
  find('[data-none]').hidden = next.length > 0;
}

// Put these rows in this order, and touch none that is in its place: one that is moved loses the focus.
function arrange(body, rows) {
  rows.forEach((row, at) => { if (body.children[at] !== row) body.insertBefore(row, body.children[at] ?? null); });
  while (body.children.length > rows.length) body.lastElementChild.remove();
}

function takeOver(old, fresh) {
  if (!old) return fresh;
  if (old.dataset.says === fresh.dataset.says) return old;
  const key = old.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const isOpen = find('details[open]', old) !== null;
  const hadFocus = old.contains(document.activeElement);
  old.replaceWith(fresh);
  if (hadFocus) ((key && find(`[data-key="${CSS.escape(key)}"]`, fresh)) || fresh).focus();
  if (isOpen) find('details', fresh)?.setAttribute('open', '');
  return fresh;
}

function rowFor(workspace) {
  const context = { live: known.live.get(workspace.id), gpus: known.capacity.gpus, doing: busy.get(workspace.id), act, isAway: isAway() };
  const row = rowOf({ workspace }, context);
  row.dataset.says = JSON.stringify([workspace, context.live ?? null, context.doing ?? '', context.isAway, context.gpus.map(gpu => gpu.index)]);
  return row;
}

function showCounts() {
  const items = [...known.workspaces.values()];
  for (const button of findAll('[data-filter]')) {
    setAttribute(button, 'aria-pressed', String(button.dataset.filter === shown.filter));
    find('.num', button).textContent = String(items.filter(TESTS[button.dataset.filter]).length);
  }
  const running = items.filter(workspace => workspace.status === 'running').length;
  find('.lede').textContent = items.length === 0 ? '' : running === 0 ? `${items.length}, none of which runs` : `${items.length}, of which ${running} ${running === 1 ? 'runs' : 'run'}`;
  setLine(lineOf());
}

// The list as it is chosen; what needs somebody no request asks for.
const STATUSES = { running: 'running,starting,stopping', stopped: 'stopped,failed,creating' };

function lineOf() {
  const status = STATUSES[shown.filter], text = shown.text.trim();
  const query = [status && `status=${status}`, text && `q=${encodeURIComponent(text)}`].filter(Boolean).join('&');
  return query ? `svc api GET ${quoted(`/api/workspaces?${query}`)}` : 'svc ws list';
}

// ---- doing ----

async function act(deed, workspace) {
  if (isAway() || busy.has(workspace.id)) return;
  if (deed === 'cancel') { await cancel(workspace); return; }
  if (QUESTIONS[deed] && !await ask(QUESTIONS[deed](workspace.name, workspace.status))) return;
  const { doing, done, failed, send } = DEEDS[deed];
  answer(null);
  busy.set(workspace.id, doing);
  showRows();
  try {
    const record = await send(`/api/workspaces/${encodeURIComponent(workspace.id)}`);
    if (record) known.workspaces.set(record.id, record);
    else known.workspaces.delete(workspace.id);
    announce(`${workspace.name}: ${done}`);
  } catch (error) {
    if (error.status !== 401) answer(refused(error, { what: `${workspace.name} ${failed}.`, act: action => actThen(action, workspace, deed), dismiss: () => answer(null) }));
  } finally {
    busy.delete(workspace.id);
    if (known.workspaces.size === 0) refreshSoon();
    keepPlaces();
    showRows();
    showCounts();
    refreshSoon();
  }
}

// The set-up of a workspace that is not there yet.
async function cancel(operation) {
  try {
    await call('POST', `/api/operations/${encodeURIComponent(operation.id)}/cancel`, { body: {} });
    toast('Cancelled');
  } catch (error) {
    answer(refused(error, { what: `The set-up of ${operation.subject.name} was not cancelled.`, dismiss: () => answer(null) }));
  }
  refreshSoon();
}

// The button of a refusal: what its hint says.
async function actThen(action, workspace) {
  const button = find('[data-answer] [data-key=act]');
  if (button.getAttribute('aria-busy')) return;
  setAttribute(button, 'aria-busy', 'true');
  try {
    await call(action.method, action.path, { body: action.body });
    answer(null);
    announce(`${action.label}: begun`);
  } catch (error) {
    answer(refused(error, { what: `${workspace.name}:`, act: next => actThen(next, workspace), dismiss: () => answer(null) }));
  }
  refreshSoon();
}

function answer(notice) {
  const box = find('[data-answer]');
  if (!box) return;
  box.replaceChildren(...(notice ? [notice] : []));
  box.hidden = notice === null;
  if (notice) { notice.focus(); notice.scrollIntoView({ block: 'nearest' }); }
}

function announce(text) { find('[data-said]').textContent = text; }

// ---- live ----

const WHOLE = ['workspace.', 'operation.finished', 'launcher.', 'image.', 'gpu.', 'capacity.'];

onEvent(event => {
  if (!known.isRead) return;
  if (event.type === 'operation.progress') progressed(event);
  else if (WHOLE.some(start => event.type.startsWith(start))) refreshSoon();
});
onGap(() => { if (known.isRead) refreshSoon(); });
onState(() => { if (known.isRead) showRows(); });

function progressed({ subject, data }) {
  const operation = known.setups.get(subject.id);
  if (data.kind !== 'setup') return;
  if (!operation) { refreshSoon(); return; }
  known.setups.set(subject.id, { ...operation, status: data.status, phase: data.phase, progress: data.progress ?? {} });
  showRows();
}

async function more() {
  try {
    await readMore();
    if (known.isRead) showAll();
  } catch { /* the rows are there; what is missing in them comes with the next reading */ }
}

async function begin() {
  stopCountDown();
  const ready = afterAMoment(() => { if (!known.isRead) showLoading(); });
  try {
    await readAll();
    ready();
    showAll();
  } catch (error) {
    ready();
    if (error.status !== 401) showError(error);
  }
}

const frame = startFrame({ refresh });
if (!session.secret) await frame; // it leaves for the sign-in screen
await begin();
await frame;
await more();
goLive();
