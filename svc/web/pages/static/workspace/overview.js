// What a workspace is and does now; and where it does not run, why.
import { call } from '../frame/api.js';
import { bar, command, element, find, panel } from '../frame/dom.js';
import { answer } from '../frame/notices.js';
import { onEvent } from '../frame/events.js';
import { isOffline, skeleton } from '../frame/frame.js';
import { oneAtATime } from '../frame/turns.js';
import { WORKSPACE_UPGRADE } from '../generated/actions.js';
import { change, doAction, onRefused, openUpgrade } from './actions.js';
import { factsOf } from './facts.js';
import { refresh } from '../screen/page.js';
import { startWorkspace, tabPath, workspacePath } from './head.js';
import {
  connectOf,
  launcherLog,
  launcherState,
  logButton,
  openButton,
  plainLines,
  sshCommand,
  tokenOf,
} from './launchers.js';
import { reasonsOf } from './reasons.js';
import { put } from '../parts/still.js';
import { editCommand } from '../parts/workspace_actions.js';
import { movedOn } from '../parts/progress.js';

const EVERY_MS = 10_000; // apps and their output; what uses the host is asked more often
const LINES = 5, LINES_STOPPED = 20; // some lines wrap, and all can be scrolled to
const overview = { record: /** @type {Api.Workspace} */ (null), followUse: null, usePath: '', historyTable: null,
  launchers: null, gpus: null, rows: null, output: null, isReading: false };

// ---- the parts, once ----

const part = (key, title, actions, ...content) =>
  panel(`${key}-h`, title, [...content, element('div.actions', actions)], { 'data-part': key },
    element('div', { 'data-body': key }));

/** @param {Api.Workspace} record */
function build(record) {
  const { name } = record;
  const link = (tab, cmd, label) => element('a.small', { href: tabPath(tab), cmd }, label);
  const now = part('now', 'Now', link('monitor', ['ws monitor', name], 'Charts and processes'),
    element('span.muted.small', 'every 2 s'));
  const meters = find('[data-body]', now);
  meters.className = 'body';
  meters.append(element('div.cols.half', { 'data-meters': true }, ...meterSkeleton(record.gpus.length)));
  const happened = element('a.small', { href: `/activity?workspace=${encodeURIComponent(record.id)}`,
    cmd: ['api', 'GET', `/api/audit?q=${record.id}`] }, 'All activity');
  find('#screen').append(element('div.stack-4', { 'data-reasons': true }),
    element('div.cols.side-r.overview',
      element('div.stack-4', now, part('apps', 'Apps', link('apps', ['ws launchers', name], 'Apps and ports')),
        part('last', 'Last output', element('span', { 'data-all': true }))),
      element('aside.panel', { 'aria-labelledby': 'facts-h' },
        element('header', element('h2', { id: 'facts-h' }, 'What it is'),
          element('div.actions', { 'data-change': true })), element('div.body', { 'data-body': 'facts' }),
        element('footer', { 'data-foot': true },
          element('span.muted.small', 'Size and variables change while it is stopped.'))),
      part('happened', 'What happened', happened)));
}

const bodyOf = key => find(`[data-body="${key}"]`);
const gpuNumber = uuid => {
  const index = overview.gpus?.find(gpu => gpu.uuid === uuid)?.index ?? null;
  return index === null ? '–' : String(index);
};
const gpuName = uuid => (gpuNumber(uuid) === '–' ? `GPU ${uuid.slice(0, 12)}` : `GPU ${gpuNumber(uuid)}`);

// ---- showing ----

/** @param {Api.Workspace} record */
function show(record) {
  overview.record = record;
  if (!find('[data-reasons]')) build(record);
  showAll();
  readMore();
}

function showAll() {
  const { record } = overview;
  const runs = record.status === 'running';
  put(find('[data-reasons]'), [record, isOffline()], () => reasonsOf(record, tools));
  find('[data-part=now]').hidden = !runs;
  followNow(runs ? workspacePath(record) : '');
  put(bodyOf('facts'), [record, overview.gpus?.map(gpu => gpu.index)], () => [
    factsOf(record, { gpuNumber, upgrade: { cmd: [WORKSPACE_UPGRADE, record.name, '--dry-run'], open: openUpgrade } }),
  ]);
  put(find('[data-change]'), [record.name, record.status], () =>
    record.allowed_actions.includes('edit')
      ? [
        element('a.small', { href: tabPath('settings'), cmd: editCommand(record.name), key: 'change' }, 'Change'),
      ]
      : []);
  find('[data-foot]').hidden = record.allowed_actions.includes('edit');
  showApps();
  showOutput();
  showHistory();
}

// The meters are a file of their own: one that does not run needs none.
async function followNow(path) {
  overview.usePath = path;
  if (!path && !overview.followUse) return;
  overview.followUse ??= (await import('./now.js')).followUse;
  overview.followUse(overview.usePath, find('[data-meters]'), gpuName);
}

// The same, until the first answer: as high as it will be.
function meterSkeleton(gpus) {
  const skeletonNow = () =>
    element('div.gauge', element('div.row', skeleton('2'), element('span.push', skeleton('2'))), bar(0));
  return Array.from({ length: 2 + gpus }, skeletonNow);
}

function showApps() {
  const { record } = overview;
  const place = find('[data-part=apps]');
  place.hidden = record.launchers.length === 0 || record.status !== 'running';
  if (place.hidden) return;
  const items = overview.launchers ?? record.launchers;
  put(bodyOf('apps'), [items, record.ports, record.name], () => [
    element('table.table.mid.fold', { 'aria-label': 'Apps' },
      element('tbody', items.map(item => appRow(item, record)))),
  ]);
}

/** @param {Api.Workspace} record */
function appRow(item, record) {
  const port = record.ports.find(other => other.name === item.port);
  const cell = (kind, ...content) => element('td', { class: kind || null }, ...content);
  return element('tr.plain',
    cell('app',
      element('div.stack', element('span.strong.ref', item.title || item.name),
        element('span.muted.small.mono', item.name))),
    cell('', item.state ? launcherState(item) : element('span.muted', '…')),
    cell(port ? 'way' : 'muted small', ...(port ? wayOf(item, port) : ['no port'])),
    cell('c-act',
      element('div.row', item.state === 'started' && item.connect && openButton(record, item),
        logButton(record, item))));
}

// The address and how another computer comes to it: as high before its state is known.
function wayOf(item, port) {
  return [
    element('div.stack',
      element('span.row', connectOf(port), item.state === 'started' && tokenOf(overview.record, item)),
      command(sshCommand(port))),
  ];
}

// Its place is as high whatever comes: nothing moves when a line does.
function showOutput() {
  const { output, record } = overview;
  find('[data-part=last]').hidden = !record.allowed_actions.includes('logs');
  const { launcher, lines, error } = output ?? { launcher: '', lines: [], error: null };
  const href = launcher ? launcherLog(record, launcher) : tabPath('logs');
  const cmd = ['ws logs', record.name, ['--launcher', launcher], ['--tail', LINES_STOPPED]];
  put(find('#last-h'), [launcher],
    () => ['Last output', launcher && ' of ', launcher && element('span.mono', launcher)].filter(Boolean));
  put(find('[data-all]'), [href, cmd], () => [element('a.small', { href, cmd, key: 'all-output' }, 'All of it')]);
  const text = error ? `It could not be read: ${error}.` : output && lines.length === 0 ? 'Nothing was printed.' : '';
  put(bodyOf('last'), [output, record.status], () => [
    element('div', { class: `log last${record.status === 'running' ? '' : ' long'}` },
      element('pre', { tabindex: '0', role: 'group', 'aria-label': 'The newest lines', class: text ? 'muted' : null },
        text || lines.join('\n'))),
  ]);
  const place = find('pre', bodyOf('last'));
  place.scrollTop = place.scrollHeight;
}

function showHistory() {
  find('[data-part=happened]').hidden = !overview.rows?.length;
  if (overview.rows) put(bodyOf('happened'), overview.rows, () => [overview.historyTable(overview.rows)]);
}

// ---- what no first look waits for ----

const readMore = oneAtATime(async () => {
  overview.isReading = true;
  await Promise.allSettled([readApps().then(readOutput), readHistory(), readGpus()]);
  overview.isReading = false;
  showAll();
});

const asked = (path, options = {}) => call('GET', path, { background: true, ...options });

async function readApps() {
  const { record } = overview;
  if (record.launchers.length === 0) return;
  try {
    overview.launchers = (await asked(`${workspacePath(record)}/launchers`)).items;
  } catch { /* their states come with the next reading */ }
}

// Of a running one: what the app prints that was started last. Of another one: what the container said at the end.
async function readOutput() {
  const { record } = overview;
  const path = workspacePath(record), runs = record.status === 'running';
  const newest =
    (overview.launchers ?? []).filter(item => item.started_at && (!runs || item.state !== 'stopped')).sort((a,
      b) => (a.started_at < b.started_at ? 1 : -1)
    )[0]?.name ?? '';
  const read = async launcher => ({ launcher, lines: plainLines(
    (await asked(
      `${path}${launcher ? `/launchers/${encodeURIComponent(launcher)}` : ''}/logs?tail=${runs ? LINES : LINES_STOPPED}`
    )).text
  ) });
  if (!record.allowed_actions.includes('logs')) return;
  try {
    const first = await read(runs ? newest : '');
    overview.output = first.lines.length > 0 || !newest ? first : await read(runs ? '' : newest);
  } catch (error) {
    if (error.status && error.status !== 401) overview.output = { launcher: '', lines: [], error: error.message };
  }
}

async function readHistory() {
  const found = await asked(`/api/audit?q=${encodeURIComponent(overview.record.id)}&limit=50`);
  overview.historyTable ??= (await import('./history.js')).historyTable;
  overview.rows = found.items.filter(row => row.target === overview.record.id);
}

async function readGpus() {
  const { record } = overview;
  if (record.gpus.length > 0 || record.resources.gpu_count)
    overview.gpus = (await asked('/api/workspaces/capacity')).gpus;
}

async function readAgain() {
  if (document.hidden || isOffline() || overview.record?.status !== 'running' || overview.isReading) return;
  await readApps();
  await readOutput();
  showApps();
  showOutput();
}

setInterval(readAgain, EVERY_MS);

// ---- remedies ----

const tools = {
  patchAndStart: async patch => {
    const { name } = overview.record;
    if (await change((path, version) => call('PATCH', path, { body: patch, ifMatch: version }), {
      failed: `${name} was not changed.`,
    })) await doAction('start');
  },
  pull: () =>
    change(
      () => call('POST', `/api/templates/${encodeURIComponent(overview.record.template.id)}/image/pull`, { body: {} }),
      { failed: 'The pull was not begun.', done: 'The pull has begun' }
    ),
};

onRefused(async (kind, error, notice) => {
  if (kind !== 'start' || error.code !== 'gpu_unavailable') return;
  const { offerToWait } = await import('./waiting.js');
  await readGpus().catch(() => {});
  const { record, gpus } = overview;
  offerToWait(notice, { record, path: workspacePath(record), gpus, done: isStarted => {
    if (isStarted) answer(null);
    refresh();
  } });
});

onEvent(({ type, subject, data }) => {
  const { record } = overview;
  if (type !== 'operation.progress' || !record?.operation || subject?.id !== record.operation.id) return;
  record.operation = movedOn(record.operation, data);
  showAll();
});

await startWorkspace({ tab: 'overview', show, command: record => ['ws get', record.name] });
