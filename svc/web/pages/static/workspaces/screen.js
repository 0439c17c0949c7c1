// The workspaces screen: headroom, and a row for each workspace, live.
import { all, call, outcomes } from '../frame/api.js';
import { command, element, find, icon, replace, setAttribute, empty } from '../frame/dom.js';
import { ask } from '../frame/asking.js';
import { askToCancel, sendCancel } from '../parts/cancelling.js';
import { isOffline, skeleton } from '../frame/frame.js';
import { ACTIONS, QUESTIONS } from '../parts/workspace_actions.js';
import { headroom, headroomSkeleton } from '../parts/headroom.js';
import { setCommand, toast } from '../frame/foot.js';
import { byName } from '../frame/format.js';
import { WORKSPACE_SETUP } from '../generated/actions.js';
import { filtersOf, hasText, showFilters } from '../parts/lists.js';
import { showRows } from '../parts/rows.js';
import { showNow, startPage, perform } from '../screen/page.js';
import { needsYou, rowOf } from './row.js';
import { movedOn } from '../parts/progress.js';

const FILTERS = { all: 'All', running: 'Running', stopped: 'Stopped', need: 'Needs attention' };
const TESTS = {
  all: () => true,
  running: workspace => ['running', 'starting', 'stopping'].includes(workspace.status),
  stopped: workspace => ['stopped', 'failed', 'creating'].includes(workspace.status),
  need: workspace => needsYou(workspace, known.live.get(workspace.id)),
};

// What is known, and what is shown of it: rows keep their places until the person looks for others.
const known = { workspaces: /** @type {Map<string, Api.Workspace>} */ (new Map()),
  live: /** @type {Map<string, Api.LiveUse>} */ (new Map()),
  setups: /** @type {Map<string, Api.Operation>} */ (new Map()), capacity: /** @type {Api.Capacity} */ (null) };
const view = { ids: [], filter: 'all', text: '', descending: false };
const busy = new Map(); // workspace id -> what a button is doing

// ---- reading ----

async function readAll({ background }) {
  const [items, capacity] = await outcomes([
    all('/api/workspaces?sort=name', { background }),
    call('GET', '/api/workspaces/capacity', { background }),
  ]);
  known.capacity = capacity.value ?? known.capacity;
  const error = items.error ?? capacity.error;
  if (error) throw error;
  known.workspaces = new Map(items.value.map(item => [item.id, item]));
}

// What no row waits for: the launchers' states, and set-ups whose workspace is not there yet.
async function readMore() {
  const options = { background: true };
  const [live, operations] = await Promise.all([
    call('GET', '/api/usage/workspaces', options),
    call('GET', '/api/operations?kind=setup&status=queued,running', options),
  ]);
  known.live = new Map(live.items.map(item => [item.id, item]));
  known.setups = new Map(operations.items.map(item => [item.id, item]));
}

// The first time, the rows are shown before.
async function read({ background }) {
  await readAll({ background });
  if (background) await readMore();
}

// ---- showing ----

const place = find('#screen');

function show() {
  setAttribute(place, 'aria-busy', null);
  replace(find('[data-room]'), headroom(known.capacity));
  if (known.workspaces.size === 0 && known.setups.size === 0) {
    showEmpty();
    return;
  }
  if (!find('[data-list]')) {
    place.replaceChildren(list());
    choose();
  }
  keepPlaces();
  showList();
}

function showEmpty() {
  showCounts();
  place.replaceChildren(
    empty('No workspace yet',
      element('p', 'A workspace is a container of your own with the files of ', element('span.mono', 'work'), ' at ',
        element('span.mono', '/work'), '. Choose a template; its image is pulled once, into your store.'),
      element('a.btn', { href: '/new', cmd: [WORKSPACE_SETUP] }, icon('plus'), 'New workspace'),
      command(['template list']))
  );
}

// What stands for what is to come goes, where nothing comes.
function unready() {
  setAttribute(place, 'aria-busy', null);
  replace(find('[data-room]'), ...(known.capacity ? [headroom(known.capacity)] : []));
}

function loading() {
  setAttribute(place, 'aria-busy', true);
  find('[data-room]').replaceChildren(headroomSkeleton());
  const cells = [['3', '2'], ['2', '3'], ['1'], ['3'], ['2'], []];
  const row = () =>
    element('tr.plain', cells.map(widths =>
      element('td', widths.length > 0 && element('div.stack-2', skeleton(...widths)))
    ));
  const waiting = filters();
  waiting.inert = true;
  return element('section.stack-2', { 'aria-busy': true, 'aria-label': 'Loading workspaces' }, waiting,
    element('div.panel',
      element('table.table.fold', { 'aria-label': 'Workspaces' }, head(),
        element('tbody', row(), row(), row(), row()))));
}

function head() {
  const titles = [['Name', 'w-name'], ['State', 'w-state'], ['GPUs'], ['Size'], ['Apps']];
  const cell = ([title, kind]) =>
    element('th', { scope: 'col', class: kind,
      'aria-sort': title === 'Name' ? view.descending ? 'descending' : 'ascending' : null },
      title === 'Name' ? element('button', { key: 'sort', click: sort }, title) : title);
  return element('thead',
    element('tr', titles.map(cell), element('th', { scope: 'col' }, element('span.vh', 'Actions'))));
}

const filters = () =>
  filtersOf({ label: 'Search workspaces', placeholder: 'Name or template', filters: FILTERS, view, again: () => {
    choose();
    showList();
  } });

function list() {
  return element('section.stack-2', { 'aria-labelledby': 'list-h', 'data-list': true },
    element('h2.vh', { id: 'list-h' }, 'Your workspaces'), filters(),
    element('div', { 'data-answer': true, hidden: true }),
    element('div.panel', element('table.table.fold', { 'aria-label': 'Workspaces' }, head(), element('tbody')),
      element('p.body.muted', { 'data-none': true, hidden: true }, 'No workspace matches.')));
}

function sort() {
  view.descending = !view.descending;
  choose();
  replace(find('table thead'), ...head().childNodes);
  showList();
}

// Choose the rows: when the person filters, searches or sorts, and never otherwise.
function choose() {
  const matches = ({ name, display_name: title, template }) => hasText(view.text, [name, title, template.name]);
  const chosen = [...known.workspaces.values()].filter(workspace =>
    TESTS[view.filter](workspace) && matches(workspace)
  );
  chosen.sort((a, b) => byName(a.name, b.name) * (view.descending ? -1 : 1));
  view.ids = chosen.map(workspace => workspace.id);
  view.known = new Set(known.workspaces.keys());
}

// Rows stay; what is gone goes, and what is new comes at the end.
function keepPlaces() {
  const fresh = [...known.workspaces.keys()].filter(id => !view.known.has(id));
  view.ids = [...view.ids.filter(id => known.workspaces.has(id)), ...fresh];
  view.known = new Set(known.workspaces.keys());
}

function showList() {
  const body = find('[data-list] tbody');
  if (!body) return;
  const gpus = known.capacity.gpus.map(gpu => gpu.index);
  const rows = view.ids.map(id => known.workspaces.get(id)).filter(Boolean).map(workspace => {
    const context = { live: known.live.get(workspace.id), gpus: known.capacity.gpus, doing: busy.get(workspace.id), act,
      isOffline: isOffline() };
    return { id: workspace.id,
      key: JSON.stringify([workspace, context.live ?? null, context.doing ?? '', context.isOffline, gpus]),
      build: () => rowOf({ workspace }, context) };
  });
  const names = new Set([...known.workspaces.values()].map(workspace => workspace.name));
  const isListed = operation =>
    !names.has(operation.subject.name) && hasText(view.text, [operation.subject.name, operation.template?.name]);
  const setups = view.filter === 'all' ? [...known.setups.values()].filter(isListed) : [];
  const next = [...rows,
    ...setups.map(setup => ({ id: setup.id, key: JSON.stringify([setup, isOffline()]),
      build: () => rowOf({ setup }, { act, isOffline: isOffline() }) })
    )];
  body.parentElement.classList.toggle('no-gpus',
    gpus.length === 0 && ![...known.workspaces.values()].some(workspace => workspace.resources.gpu_count));
  showRows(body, next);
  find('[data-none]').hidden = next.length > 0;
  showCounts();
}

function showCounts() {
  const items = [...known.workspaces.values()];
  showFilters(view, name => items.filter(TESTS[name]).length);
  const running = items.filter(workspace => workspace.status === 'running').length;
  find('.lede').textContent = items.length === 0
    ? ''
    : running === 0
    ? `${items.length}, none of which runs`
    : `${items.length}, of which ${running} ${running === 1 ? 'runs' : 'run'}`;
  setCommand(listCommand());
}

// The list as it is chosen; what needs somebody no request asks for.
const STATUSES = { running: 'running,starting,stopping', stopped: 'stopped,failed,creating' };

function listCommand() {
  const status = STATUSES[view.filter], text = view.text.trim();
  const query = [status && `status=${status}`, text && `q=${encodeURIComponent(text)}`].filter(Boolean).join('&');
  return query ? ['api', 'GET', `/api/workspaces?${query}`] : ['ws list'];
}

// ---- doing ----

async function act(kind, workspace) {
  if (isOffline() || busy.has(workspace.id)) return;
  if (kind === 'cancel') {
    await cancel(workspace);
    return;
  }
  if (QUESTIONS[kind] && !await ask(QUESTIONS[kind](workspace))) return;
  const { doing, done, failed, send } = ACTIONS[kind], { id, name } = workspace, at = view.ids.indexOf(workspace.id);
  busy.set(id, doing);
  showList();
  await perform(null, { what: `${name} ${failed}.`, done: `${name}: ${done}` }, async () => {
    const record = await send(`/api/workspaces/${encodeURIComponent(id)}`);
    if (record) known.workspaces.set(id, record);
    else known.workspaces.delete(id);
  });
  busy.delete(id);
  keepPlaces();
  showList();
  if (!known.workspaces.has(id)) focusRow(at);
}

// The focus to the row that is in the place of one that is gone, or to what makes a new one.
function focusRow(at) {
  if (document.activeElement !== document.body && document.activeElement) return;
  (find(`[data-id="${CSS.escape(view.ids[Math.min(at, view.ids.length - 1)] ?? '')}"]`) ?? find('a[href="/new"]'))
    ?.focus();
}

// The set-up of a workspace that is not there yet.
/** @param {Api.Operation} operation */
async function cancel(operation) {
  const { id, subject } = operation;
  if (!await askToCancel(operation)) return;
  const isDone = await perform(null, { what: `The set-up of ${subject.name} was not cancelled.` },
    () => sendCancel(id));
  if (isDone) toast('Cancelled');
}

// ---- live ----

const WHOLE = ['workspace.', 'operation.finished', 'launcher.', 'image.', 'gpu.', 'capacity.'];

// What a set-up says of its progress is shown as it is; all else is read anew.
function wants({ type, subject, data }) {
  if (type !== 'operation.progress') return WHOLE.some(start => type.startsWith(start));
  const operation = known.setups.get(subject.id);
  if (data.kind !== 'setup' || !operation) return data.kind === 'setup';
  known.setups.set(subject.id, movedOn(operation, data));
  showList();
  return false;
}

async function later() {
  try {
    await readMore();
    showNow();
  } catch { /* the rows are there; what is missing in them comes with the next reading */ }
}

await startPage({
  read,
  show,
  loading,
  unready,
  later,
  wants,
  failed: error =>
    error.status === 403 ? 'There are no workspaces here for you.' : 'Your workspaces could not be read.',
});
