// One row of the workspaces screen.
import { element, icon, stateMark } from '../frame/dom.js';
import { amount, duration, gibibytes, time } from '../frame/format.js';
import { TERMINAL_OPEN, WORKSPACE_UPGRADE } from '../generated/actions.js';
import { cancelCommand } from '../parts/cancelling.js';
import { loadedOf } from '../parts/progress.js';
import { reason } from '../parts/reasons.js';
import { menuOf } from '../parts/menu.js';
import { spelledOut } from '../parts/unseen.js';
import { cell } from '../parts/tables.js';
import { ACTIONS, KEEP_HOURS, commandOf, editCommand } from '../parts/workspace_actions.js';
import { MOVING, PHASES, idleOf } from '../parts/workspace_states.js';

const TERMINAL_ICON = 'M1.5 3h13v10h-13zM4.5 6l2 2-2 2M8 10.5h3';

// Failed, killed, lost its GPU, about to be stopped, or an app of it ended.
/** @param {Api.Workspace} workspace */
export function needsYou(workspace, live) {
  return workspace.status === 'failed' || workspace.status_reason === 'oom_killed' || workspace.health === 'gpu_lost'
    || idleOf(workspace)?.action === 'stop' || (live?.launchers ?? []).some(isDead);
}

const isDead = ({ state, exit_code: code }) => state === 'exited' && code !== 0;

// A workspace, or the set-up of one.
export function rowOf({ workspace = null, setup = null }, context) {
  return setup ? setupRow(setup, context) : workspaceRow(workspace, context);
}

/** @param {Api.Workspace} workspace */
function workspaceRow(workspace, context) {
  const { name, template } = workspace;
  const newer = template.newer_revision
    && ['; ',
      element('a.small', { href: `/templates/${template.name}`, cmd: [WORKSPACE_UPGRADE, name] },
        `${template.newer_revision} is out`)];
  return element('tr', { tabindex: '-1', 'data-id': workspace.id },
    cell(null, '',
      element('div.stack',
        element('a.name', { href: pathOf(workspace), title: spelledOut(workspace.display_name) || name,
          cmd: ['ws get', name], key: 'name' }, name),
        small(`${template.name}, revision ${template.revision}`, ...(newer || [])))),
    cell('State', '', element('div.stack', ...stateOf(workspace, context))),
    cell('GPUs', '', ...gpusOf(workspace, context.gpus)), cell('Size', 'num soft nw', ...sizeOf(workspace)),
    cell('Apps', '', ...appsOf(workspace, context.live)),
    cell(null, 'c-act', element('div.row', ...buttonsOf(workspace, context), menuOfRow(workspace, context))));
}

const pathOf = ({ name }) => `/workspaces/${encodeURIComponent(name)}`;

// ---- state ----

/** @param {Api.Workspace} workspace */
function stateOf(workspace, { doing, act, isOffline }) {
  const { status, health } = workspace;
  if (MOVING[status]) return [stateMark('busy', MOVING[status]), small(time(workspace.status_since, 'age'))];
  if (status === 'failed') return [stateMark('failed', 'Failed'), why(workspace)];
  if (status === 'stopped') return [stateMark('stopped', 'Stopped'), why(workspace)];
  if (health === 'gpu_lost')
    return [stateMark('failed', 'GPU lost'), element('span.small.is-danger', 'restart it for another one')];
  const idle = idleOf(workspace);
  if (!idle)
    return [stateMark('running', 'Running'), small(time(workspace.started_at ?? workspace.status_since, 'age'))];
  const label = `${ACTIONS.keep.label} ${KEEP_HOURS} h`;
  const keep = element('button.btn.link.small', { 'aria-label': `${label}: ${workspace.name}`,
    'aria-disabled': isOffline || Boolean(doing), cmd: commandOf('keep', workspace.name), key: 'keep',
    click: () => act('keep', workspace) }, label);
  const text = idle.action === 'stop'
    ? element('span.state.warn', element('span', 'Idle, stops in ', time(idle.ends, 'until')))
    : stateMark('warn', 'Idle');
  return [text, small('quiet for ', time(idle.since, 'age'), ` of ${duration(idle.after)} `, keep)];
}

const small = (...content) => element('span.muted.small', ...content);

/** @param {Api.Workspace} workspace */
function why(workspace) {
  const { status, status_reason: code, exit_code: exit, last_error: failure } = workspace;
  const text = reason(code, exit) || (status === 'failed' ? failure?.message ?? '' : '');
  const at = workspace.stopped_at ?? workspace.status_since;
  const kind = code === 'oom_killed' || (code === 'container_exited' && exit) ? 'small is-danger' : 'muted small';
  const since = status === 'stopped' && !workspace.started_at && !text ? 'never started' : time(at, 'ago');
  return element('span', { class: kind, title: code ?? null }, text && `${text}, `, since);
}

// ---- GPUs, size, apps ----

function gpusOf({ gpus, resources, status }, all) {
  const count = resources.gpu_count ?? 0;
  if (count === 0 && gpus.length === 0) return [];
  if (gpus.length === 0) {
    return [
      element('span.gpus', element('span.chip-n.want', element('span.vh', 'wants '), String(count)),
        small(status === 'running' ? 'GPUs' : 'wanted')),
    ];
  }
  const isShared = gpus.some(gpu => gpu.mode === 'shared');
  const index = gpu => all.find(other => other.uuid === gpu.uuid)?.index ?? '–';
  return [
    element('span.gpus', element('span.vh', gpus.length === 1 ? 'GPU ' : 'GPUs '),
      gpus.map(gpu =>
        element('span', { class: `chip-n${isShared ? ' half' : ''}`, title: gpu.uuid }, String(index(gpu)))
      ), isShared && small('shared')),
  ];
}

function sizeOf({ name, resources, status_reason: code }) {
  const cpus = resources.cpu_limit === null
    ? 'all CPUs'
    : `${amount(resources.cpu_limit)}\u00a0${resources.cpu_limit === 1 ? 'CPU' : 'CPUs'}`;
  const memory = resources.memory_bytes === null ? 'all memory' : `${gibibytes(resources.memory_bytes)}\u00a0GiB`;
  const raise = code === 'oom_killed' && resources.memory_bytes !== null
    && element('a.small', { href: `/workspaces/${encodeURIComponent(name)}/settings`,
      cmd: editCommand(name, { resources: { memory_bytes: resources.memory_bytes * 2 } }), key: 'raise' }, 'Raise');
  return [`${cpus}, ${memory}`, raise && ' ', raise];
}

/** @param {Api.Workspace} workspace */
function appsOf(workspace, live) {
  if (workspace.status !== 'running' || !live) return [];
  const parts = [];
  for (const launcher of live.launchers) {
    const { name, state: is, exit_code: code } = launcher;
    if (is === 'started')
      parts.push(
        element('a', { href: `${pathOf(workspace)}/apps`, cmd: ['ws launchers', workspace.name], key: `app-${name}` },
          name)
      );
    else if (is === 'exited')
      parts.push(
        element('span.stack', isDead(launcher) ? element('span.is-danger', `${name} ended`) : small(`${name} ended`),
          element('span.small', code === null ? '' : `with ${code}: `,
            element('a', { href: `${pathOf(workspace)}/logs?launcher=${encodeURIComponent(name)}`,
              cmd: ['ws logs', workspace.name, '--launcher', name], key: `log-${name}` }, 'its log')))
      );
  }
  return parts.length ? [element('span.row', ...parts)] : [];
}

// ---- buttons ----

/** @param {Api.Workspace} workspace */
function buttonsOf(workspace, context) {
  const { name, status, allowed_actions: allowed } = workspace;
  const buttons = [];
  if (allowed.includes('exec'))
    buttons.push(
      element('a.btn.sm', { href: `${pathOf(workspace)}/terminal`, 'aria-label': `Terminal ${name}`,
        cmd: [TERMINAL_OPEN, name], key: 'terminal' }, icon(TERMINAL_ICON), 'Terminal')
    );
  if (allowed.includes('stop') && status === 'running')
    buttons.push(actionButton('stop', workspace, context, { style: 'quiet' }));
  if (allowed.includes('start') || status === 'starting')
    buttons.push(
      actionButton('start', workspace, context, { label: status === 'failed' ? 'Try again' : 'Start' })
    );
  return buttons;
}

/** @param {Api.Workspace} workspace */
function actionButton(kind, workspace, { doing, act, isOffline }, { label = ACTIONS[kind].label, style = '' } = {}) {
  const isBusy = doing === ACTIONS[kind].doing || MOVING[workspace.status] === ACTIONS[kind].doing;
  return element('button', { class: `btn sm ${style}`, 'aria-label': `${label} ${workspace.name}`, 'aria-busy': isBusy,
    'aria-disabled': isOffline || Boolean(doing), cmd: commandOf(kind, workspace.name), key: kind, click: () => {
      if (!isBusy) act(kind, workspace);
    } }, !isBusy && icon(kind), label);
}

/** @param {Api.Workspace} workspace */
function menuOfRow(workspace, { act, isOffline, doing }) {
  const { name, status, allowed_actions: allowed } = workspace;
  const go = (label, path, cmd) => ({ label, cmd, href: `${pathOf(workspace)}${path}` });
  const does = (kind, style = null) => ({ label: ACTIONS[kind].label, cmd: commandOf(kind, name), class: style,
    press: () => act(kind, workspace) });
  return menuOf(name, [
    allowed.includes('logs') && go('Logs', '/logs', ['ws logs', name, status === 'running' && '--follow']),
    allowed.includes('restart') && does('restart'),
    status === 'failed' && allowed.includes('stop') && does('stop'),
    go('Settings', '/settings', editCommand(name)),
    ...(allowed.includes('delete') ? [null, does('delete', 'danger')] : []),
  ], { isOff: isOffline || Boolean(doing) });
}

// ---- a set-up: its workspace is there when its image is ----

/** @param {Api.Operation} operation */
function setupRow(operation, { act, isOffline }) {
  const { subject, template, phase, progress } = operation;
  return element('tr', { tabindex: '-1', 'data-id': operation.id },
    cell(null, '',
      element('div.stack',
        element('a.name', { href: `/new?setup=${encodeURIComponent(operation.id)}`,
          cmd: ['operation watch', operation.id], key: 'name' }, subject.name), small(template?.name ?? ''))),
    cell('State', '',
      element('div.stack',
        stateMark('busy', PHASES[operation.status === 'queued' ? 'queued' : phase] ?? 'Being set up'),
        ...loadedOf(progress, 'span'))), cell('GPUs'), cell('Size'), cell('Apps'),
    cell(null, 'c-act',
      element('div.row',
        element('button.btn.sm', { 'aria-label': `Cancel the set-up of ${subject.name}`, 'aria-disabled': isOffline,
          cmd: cancelCommand(operation.id), key: 'cancel', click: () => act('cancel', operation) }, icon('close'),
          'Cancel'))));
}
