// What all pages of one workspace share: its record as it changes, the head with what can be done, and the tabs.
import { Unreachable, send } from '../frame/api.js';
import { element, find, findAll, replace, setAttribute, stateMark } from '../frame/dom.js';
import { isOffline, panelSkeleton, skeleton } from '../frame/frame.js';
import { setCommand, toast } from '../frame/foot.js';
import { announce } from '../frame/notices.js';
import { refresh, showNow, showRead, startPage } from '../screen/page.js';
import { put } from '../parts/still.js';
import { actOn, headActions, isDoing, onDone } from './actions.js';
import { time, commaList } from '../frame/format.js';
import { TERMINAL_OPEN } from '../generated/actions.js';
import { spelledOut } from '../parts/unseen.js';
import { editCommand } from '../parts/workspace_actions.js';
import { MOVING, idleOf } from '../parts/workspace_states.js';

const TAB_PATHS = { overview: '', terminal: '/terminal', logs: '/logs', apps: '/apps', monitor: '/monitor',
  settings: '/settings' };
const TAB_NAMES = { overview: '', terminal: 'Terminal', logs: 'Logs', apps: 'Apps and ports', monitor: 'Monitor',
  settings: 'Settings' };
const NEED_RUNNING = ['terminal', 'monitor'];
const READ_AGAIN = ['workspace.', 'launcher.', 'operation.finished', 'gpu.', 'image.'];

// The name, or the id, in the address: what the page was opened for.
export const workspaceName = nameInAddress();
/** @param {Api.Workspace} record */
export const workspacePath = record => `/api/workspaces/${encodeURIComponent(record.id)}`;
export const tabPath = tab =>
  `/workspaces/${encodeURIComponent(opened.record?.name ?? workspaceName)}${TAB_PATHS[tab]}`;
// The version of a record, for If-Match.
/** @param {Api.Workspace} record */
export const versionOf = record => versions.get(record) ?? null;

const versions = new WeakMap();
const opened = { record: /** @type {Api.Workspace} */ (null), visible: null, tab: '', show: null, command: null,
  resolve: null };

function nameInAddress() {
  const text = location.pathname.split('/')[2] ?? '';
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Start the frame, read the workspace, fill head and tabs; call `show(record)` at first and whenever it has changed,
// and set the command at the foot by `command(record)`. Resolves to the first record, when the page is live.
export async function startWorkspace({ tab, show, command }) {
  Object.assign(opened, { tab, show, command });
  const first = new Promise(resolve => {
    opened.resolve = resolve;
  });
  onDone(record => (record ? showRead(record) : refresh()), showNow);
  find('#main h1').textContent = workspaceName;
  document.title = titleOf(workspaceName);
  showTabs();
  // narrow windows show some tabs only
  find('.tabs [aria-current]').scrollIntoView({ block: 'nearest', inline: 'nearest' });
  await startPage({ read: readRecord, took: tookRecord, loading: headSkeleton, gone: goneRecord, unready: unreadyHead,
    comes: true, failed: `${workspaceName} could not be read.`, show: showRecord, cover: showInstead,
    wants: event => READ_AGAIN.some(start => event.type.startsWith(start)) && concerns(event) });
  await first;
  return opened.record;
}

// An event of another workspace or another template's image is no reason to read this one.
function concerns({ type, subject }) {
  if (!opened.record || !type.startsWith('workspace.')) return true;
  return !subject || subject.id === opened.record.id;
}

async function readRecord(options) {
  const path = opened.record ? workspacePath(opened.record) : `/api/workspaces/${encodeURIComponent(workspaceName)}`;
  const response = await send('GET', path, options);
  try {
    const record = await response.json();
    versions.set(record, response.headers.get('ETag'));
    return record;
  } catch {
    throw new Unreachable(); // it broke off
  }
}

// A record that was read, or that an action has answered with.
/** @param {Api.Workspace} record */
function tookRecord(record) {
  const old = opened.record;
  opened.record = record;
  if (!old || old.name !== record.name) nameIt(record.name, old !== null);
}

function showRecord() {
  const { record } = opened;
  showHead();
  if (record === opened.visible) return;
  opened.visible = record;
  setCommand(opened.command(record));
  opened.show(record);
  opened.resolve(record);
}

// ---- head and tabs ----

const titleOf = name => commaList(TAB_NAMES[opened.tab], name);

function nameIt(name, isNew) {
  document.title = document.title.replace(/^.*(?= · )/, () => titleOf(name));
  if (isNew) history.replaceState(history.state, '', `${tabPath(opened.tab)}${location.search}${location.hash}`);
}

function showHead() {
  const { record } = opened;
  find('#main h1').textContent = record.name;
  const title = find('[data-display]');
  title.textContent = title.title = spelledOut(record.display_name);
  title.hidden = record.display_name === '';
  put(find('[data-state]'), [record, Date.now() > Date.parse(record.idle.keep_until ?? '')], () => headState(record));
  showTabs();
  actOn(record, versionOf(record));
  if (find('[data-actions] details[open]')) return; // a menu that is open stays as it is
  put(find('[data-actions]'), [record, isDoing(), isOffline()],
    () => headActions({ hasPrimary: opened.tab !== 'settings' }));
}

// The state in a word, and since when.
/** @param {Api.Workspace} record */
function headState(record) {
  const { status, health, status_since: since } = record, idle = idleOf(record);
  const mark = (kind, text, at, form = 'age') => [stateMark(kind, text), element('span.muted.small', time(at, form))];
  if (MOVING[status]) return mark('busy', MOVING[status], since);
  if (status === 'failed') return mark('failed', 'Failed', record.stopped_at ?? since, 'ago');
  if (status === 'stopped') return mark('stopped', 'Stopped', record.stopped_at ?? since, 'ago');
  if (health === 'gpu_lost') return mark('failed', 'GPU lost', record.started_at ?? since);
  if (idle?.action === 'stop')
    return [element('span.state.warn', element('span', 'Idle, stops in ', time(idle.ends, 'until')))];
  return mark(idle ? 'warn' : 'running', idle ? 'Idle' : 'Running', idle?.since ?? record.started_at ?? since);
}

// A tab that needs the workspace to run is not now while it does not; by its address it is there all the same.
function showTabs() {
  const runs = !opened.record || opened.record.status === 'running';
  const why = `It does not run: ${opened.record?.name ?? ''} must be started first.`;
  find('#tab-why').textContent = why;
  findAll('.tabs [data-tab]').forEach((link, at) => {
    const tab = Object.keys(TAB_PATHS)[at];
    const isOff = NEED_RUNNING.includes(tab) && !runs && tab !== opened.tab;
    setAttribute(link, 'href', isOff ? null : tabPath(tab));
    setAttribute(link, 'data-cmd', isOff ? null : TAB_COMMANDS[tab](opened.record?.name ?? workspaceName, runs));
    for (
      const [name, value] of Object.entries({ role: 'link', tabindex: '0', 'aria-disabled': true,
        'aria-describedby': 'tab-why', title: why })
    ) setAttribute(link, name, isOff ? value : null);
    link.onclick = isOff ? () => toast(why) : null;
  });
}

const TAB_COMMANDS = {
  overview: name => ['ws get', name],
  terminal: name => [TERMINAL_OPEN, name],
  logs: (name, runs) => ['ws logs', name, runs && '--follow'],
  apps: name => ['ws launchers', name],
  monitor: name => ['ws monitor', name],
  settings: name => editCommand(name),
};

// ---- while it is read, where it is not there, when it goes ----

function headSkeleton() {
  if (!opened.record) put(find('[data-state]'), 'skeleton', () => skeleton('2'));
  return panelSkeleton('the workspace', 4);
}

// Instead of the tab's own content, which stays as it is meanwhile.
function showInstead(...content) {
  find('#screen').hidden = content.length > 0;
  replace(find('[data-instead]'), ...content);
  find('[data-instead]').hidden = content.length === 0;
}

function unreadyHead() {
  setCommand(['ws list']);
  for (const part of ['state', 'actions']) put(find(`[data-${part}]`), null, () => []);
}

// It was deleted, or may be there soon: its image is being pulled.
async function goneRecord({ status }) {
  if (status !== 404) return null;
  const { absent, setupOf } = await import('./setting_up.js');
  if (opened.record) {
    announce(`${opened.record.name} was deleted`);
    return absent(`${opened.record.name} was deleted`, 'Its files in /work are still there.');
  }
  return await setupOf(workspaceName).catch(() => null)
    ?? absent(`There is no workspace ${workspaceName}`,
      "It may have been deleted or renamed, or it is somebody else's.");
}
