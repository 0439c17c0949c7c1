// The apps and ports of a workspace: what runs behind them, and how another computer comes to them.
import { call, outcomes } from '../frame/api.js';
import { command, element, find, icon, panel, rowsIn, setAttribute, stateMark } from '../frame/dom.js';
import { announce } from '../frame/notices.js';
import { ask } from '../frame/asking.js';
import { hostName, isOffline, skeleton } from '../frame/frame.js';
import { setCommand } from '../frame/foot.js';
import { afterAMoment, oneAtATime } from '../frame/turns.js';
import { time, commaList } from '../frame/format.js';
import {
  WORKSPACE_LAUNCHER_START,
  WORKSPACE_LAUNCHER_STOP,
  WORKSPACE_PORT_ADD,
  WORKSPACE_PORT_REMOVE,
} from '../generated/actions.js';
import { change } from './actions.js';
import { pointAtErrors, showErrors } from '../parts/form.js';
import { startWorkspace, workspacePath } from './head.js';
import { connectOf, launcherState, logButton, openButton, plainLines, sshCommand, tokenOf } from './launchers.js';
import { arrange } from '../parts/rows.js';
import { portFields, portRequest, portTexts } from '../parts/port_rows.js';
import { cell, tableOf } from '../parts/tables.js';
import { isUnderHand, put } from '../parts/still.js';

const APPS_EVERY_MS = 5000; // connections make no event, and neither does a token that an app prints later
const known = { record: /** @type {Api.Workspace} */ (null), launchers: /** @type {Api.LauncherState[]} */ (null),
  ports: /** @type {Api.PortState[]} */ (null), error: null, lastLines: new Map(), busy: new Map() };

// ---- the parts, once ----

function table(label, key, heads) {
  const node = tableOf(label, heads);
  find('tbody', node).dataset.rows = key;
  return node;
}

function build() {
  find('#screen').replaceChildren(
    panel('apps-h', 'Apps', element('span.muted.small', 'from the template; their output is kept'),
      element('div', { 'data-error': 'apps' }),
      table('Apps', 'apps', ['App', 'State', 'Since', 'Address', 'Starts by itself', '']),
      element('p.body.muted', { 'data-none': 'apps', hidden: true },
        'Its template has no apps. What you start in a terminal is reached by a port.')),
    panel('ports-h', 'Ports', element('span.muted.small', `on 127.0.0.1 of ${hostName()}, while it runs`),
      table('Ports', 'ports', ['Name', 'Inside', 'On the host', 'State', 'Who may connect', 'From your computer, first',
        '']), element('p.body.muted', { 'data-none': 'ports', hidden: true }, 'No port yet.'),
      element('footer', portForm())),
    element('span', { id: 'stopped-why', hidden: true }, 'It does not run: start it first.')
  );
}

// ---- showing ----

// Rows are shown when their states are known: how high they are depends on them.
/** @param {Api.Workspace} record */
async function show(record) {
  known.record = record;
  if (find('[data-rows]')) {
    showAll();
    read();
    return;
  }
  const ready = afterAMoment(() => {
    if (!find('[data-rows]')) find('#screen').replaceChildren(...skeletonNow(record));
  });
  await read();
  ready();
}

function skeletonNow({ launchers, ports }) {
  const row = () => element('tr.plain', ['3', '2', '1', '1'].map(width => element('td', skeleton(width))));
  const rows = count =>
    element('table.table.mid.fold', { 'aria-hidden': true },
      element('tbody', Array.from({ length: Math.max(1, count) }, row)));
  return [launchers, ports].map((items, at) =>
    element('section.panel', { 'aria-busy': true, 'aria-label': at ? 'Loading the ports' : 'Loading the apps' },
      element('header', skeleton('2')), rows(items.length))
  );
}

function showAll() {
  if (!find('[data-rows]')) build();
  const { record } = known;
  const launchers = known.launchers ?? record.launchers;
  const ports = known.ports ?? record.ports;
  const runs = record.status === 'running';
  const shared = [record.name, runs, isOffline()];
  putRows(find('[data-rows=apps]'), launchers, { idOf: item => item.name,
    keyOf: item => [item, portOf(item, ports), shared, known.busy.get(item.name), known.lastLines.get(item.name)],
    cells: item => appCells(item, portOf(item, ports), runs) });
  putRows(find('[data-rows=ports]'), ports, { idOf: item => item.name, keyOf: item => [item, shared],
    cells: portCells });
  for (const [key, items] of [['apps', launchers], ['ports', ports]]) {
    find(`[data-none=${key}]`).hidden = items.length > 0;
    find(`[data-rows=${key}]`).parentElement.hidden = items.length === 0;
  }
  put(find('[data-error=apps]'), known.error, () =>
    known.error
      ? [element('p.body.is-danger', `Their states could not be read: ${known.error}.`)]
      : []);
}

// Rows stay where they are, and only their cells are made anew.
function putRows(body, items, { idOf, keyOf, cells }) {
  if (isUnderHand(body, () => putRows(body, items, { idOf, keyOf, cells }))) return;
  const old = new Map(rowsIn(body).map(row => [row.dataset.id, row]));
  const rows = items.map(item => old.get(idOf(item)) ?? element('tr', { tabindex: '-1', 'data-id': idOf(item) }));
  arrange(body, rows);
  items.forEach((item, at) => put(rows[at], keyOf(item), () => cells(item)));
}

/** @param {Api.LauncherState} launcher */
const portOf = (launcher, ports) => ports.find(port => port.name === launcher.port) ?? null;

function appCells(item, port, runs) {
  const { name, title, state, started_at: started, finished_at: finished } = item;
  const last = state === 'exited' ? known.lastLines.get(name) : '';
  const at = state === 'started' ? started : state === 'exited' ? finished ?? started : null;
  return [
    cell(null, 'app',
      element('div.stack', element('span.strong.ref', title || name), element('span.muted.small.mono', name))),
    cell('State', '',
      element('div.stack', state ? launcherState(item) : element('span.muted', '…'),
        last && element('span.mono.tiny.muted.ref', last))),
    cell('Since', 'muted num nw', at ? time(at, state === 'started' ? 'age' : 'ago') : '–'),
    cell('Address', port && state === 'started' ? '' : 'muted small', ...addressOf(item, port)),
    cell('By itself', '', item.autostart ? 'yes' : 'no'),
    cell(null, 'c-act',
      element('div.row', state === 'started' && item.connect && openButton(known.record, item),
        state !== 'started' && state && launcherButton('start', item, runs), logButton(known.record, item),
        state === 'started' && launcherButton('stop', item, runs))),
  ];
}

// Where it is reached while it runs; else the name of its port.
function addressOf(item, port) {
  if (item.port && !port) return [`port ${item.port}, removed`];
  const isUp = item.state === 'started', token = isUp ? tokenOf(known.record, item) : null;
  const text = !item.port ? 'no port' : isUp && item.connect ? connectOf(item) : `port ${item.port}`;
  return token ? [element('div.stack', text, token)] : [text];
}

const LAUNCHER_ACTIONS = { start: WORKSPACE_LAUNCHER_START, stop: WORKSPACE_LAUNCHER_STOP };
const launcherCommand = (kind, name) => [LAUNCHER_ACTIONS[kind], known.record.name, name];

function launcherButton(kind, item, runs) {
  const { name, title } = item;
  const { label } = LAUNCHER_ACTIONS[kind];
  const isBusy = known.busy.get(name) === kind, isOff = !runs || isOffline() || known.busy.has(name);
  return element('button', { class: `btn sm${kind === 'stop' ? ' quiet' : ''}`,
    'aria-label': `${label} ${title || name}`, key: `${kind}-${name}`, 'aria-busy': isBusy, 'aria-disabled': isOff,
    'aria-describedby': runs ? null : 'stopped-why', title: runs ? null : 'It does not run',
    cmd: launcherCommand(kind, name), click: () => {
      if (!isOff) launch(kind, item);
    } }, kind === 'start' && !isBusy && icon('start'), label);
}

function portCells(port) {
  const { name, container_port: inside, state, connections, refused, access, listens } = port;
  const counts = commaList(
    connections > 0 || state === 'open' ? `${connections} ${connections === 1 ? 'connection' : 'connections'}` : '',
    refused ? `${refused} refused` : '',
    listens === false ? 'nothing listens inside' : ''
  );
  return [
    cell(null, 'name', name),
    cell('Inside', 'num', String(inside)),
    cell('On the host', '', connectOf(port)),
    cell('State', '', state
      ? element('span.row', stateMark(state, state === 'open' ? 'Open' : 'Closed'),
        counts && element('span.muted.small.num', counts))
      : element('span.muted', '…')),
    cell('Who', 'small', access === 'host' ? element('span.is-warn', 'everybody on the host') : 'you'),
    cell(null, '', command(sshCommand(port))),
    cell(null, 'c-act',
      element('div.row',
        element('button.btn.sm.quiet', { 'aria-label': `Remove the port ${name}`, key: `remove-${name}`,
          'aria-disabled': isOffline(), cmd: removeCommand(name), click: () => removePort(port) }, 'Remove'))),
  ];
}

const removeCommand = name => [WORKSPACE_PORT_REMOVE, known.record.name, name];

// ---- reading ----

const read = oneAtATime(async () => {
  await readBoth();
  showAll();
});

async function readBoth() {
  const path = workspacePath(known.record), options = { background: true };
  const [launchers, ports] = await outcomes([call('GET', `${path}/launchers`, options),
    call('GET', `${path}/ports`, options)]);
  known.launchers = launchers.value?.items ?? known.launchers;
  known.ports = ports.value?.items ?? known.ports;
  const error = launchers.error ?? ports.error;
  known.error = error?.status && error.status !== 401 ? error.message : null;
  for (const item of known.launchers ?? [])
    if (item.state === 'exited' && item.exit_code) await readLastLine(path, item);
}

async function readLastLine(path, { name, finished_at: at }) {
  if (known.lastLines.get(`${name} ${at}`) !== undefined) return;
  try {
    const { text } = await call('GET', `${path}/launchers/${encodeURIComponent(name)}/logs?tail=3`, {
      background: true,
    });
    known.lastLines.set(`${name} ${at}`, true);
    known.lastLines.set(name, plainLines(text).filter(line => line.trim()).at(-1)?.slice(0, 200) ?? '');
  } catch { /* its log says it */ }
}

setInterval(() => {
  if (!document.hidden && !isOffline() && known.record?.status === 'running') read();
}, APPS_EVERY_MS);

// ---- doing ----

async function launch(kind, { name, title }) {
  const { done } = LAUNCHER_ACTIONS[kind];
  if (kind === 'stop'
    && !await ask({ title: `Stop ${title || name}?`,
      paragraphs: ['It ends, and what it has in memory is lost. Its output and files stay.'],
      action: `Stop ${title || name}`, keep: 'Let it run', cmd: launcherCommand(kind, name) })) return;
  known.busy.set(name, kind);
  showAll();
  await change(async path => {
    const state = await call('POST', `${path}/launchers/${encodeURIComponent(name)}/${kind}`, { body: {} });
    known.launchers = (known.launchers ?? []).map(item => (item.name === name ? state : item));
  }, { failed: `${title || name} was not ${done.toLowerCase()}.`, done: `${title || name}: ${done}` });
  known.busy.delete(name);
  showAll();
}

async function removePort({ name, connections }) {
  if (isOffline()) return;
  const ends = connections > 1
    ? [`Its ${connections} connections end.`]
    : connections
    ? ['Its one connection ends.']
    : [];
  if (!await ask({ title: `Remove the port ${name}?`, paragraphs: [
    [...ends, 'Nobody reaches the program behind it by this port any more; the program runs on.'].join(' '),
  ], action: `Remove ${name}`, cmd: removeCommand(name) })) return;
  const isRemoved = await change(path => call('DELETE', `${path}/ports/${encodeURIComponent(name)}`), {
    failed: `The port ${name} was not removed.`,
    done: `The port ${name}: Removed`,
  });
  if (isRemoved) known.ports = (known.ports ?? []).filter(port => port.name !== name);
  showAll();
}

// ---- a new port ----

const typed = () => portTexts(find('[data-port]'));

function addCommand({ name, container_port: inside, access, kind, user }) {
  return [WORKSPACE_PORT_ADD, known.record.name, name, ['--container-port', inside], ['--access',
    access === 'host' && access], ['--kind', kind !== 'http' && kind], ['--user', user]];
}

/** @param {Api.Workspace} record */
function footCommand(record) {
  const port = find('[data-port]') ? typed() : null;
  if (port?.name || port?.container_port) return addCommand(port);
  return [['ws launchers', record.name], ['ws ports', record.name]];
}

function portForm() {
  const fields = portFields(),
    button = element('button.btn', { type: 'submit', key: 'add' }, icon('plus'), 'Add a port');
  for (const node of fields) {
    const control = find('.input', node);
    control.dataset.field = control.dataset.part;
    control.id = `port-${control.dataset.part}`;
  }
  const update = () => {
    setCommand(footCommand(known.record));
    setAttribute(button, 'data-cmd', addCommand(typed()));
  };
  const follow = () => {
    showErrors(form, []);
    update();
  };
  const form = element('form.row', { 'data-port': true, novalidate: true,
    on: { input: follow, change: follow, submit: event => {
      event.preventDefault();
      addPort(form, button).then(update);
    } } }, ...fields, button,
    element('span.muted.small', "Open at once, also to programs that listen on the workspace's own 127.0.0.1."));
  setAttribute(button, 'data-cmd', addCommand(portTexts(form)));
  return form;
}

async function addPort(form, button) {
  showErrors(form, []);
  const texts = typed(), failed = `The port ${texts.name} was not added.`;
  await change(async path => {
    const port = await call('POST', `${path}/ports`, { body: portRequest(texts) });
    known.ports = [...(known.ports ?? []).filter(other => other.name !== port.name), port];
    form.reset();
    find('#port-kind').dispatchEvent(new Event('change', { bubbles: true }));
    showAll();
    find('#port-name').focus();
    announce(`The port ${texts.name}: Open at ${port.connect}`);
  }, { failed, button, refuse: error => pointAtErrors(form, error.fields) });
}

await startWorkspace({ tab: 'apps', show, command: footCommand });
