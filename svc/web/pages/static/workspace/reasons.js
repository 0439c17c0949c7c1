// Why a workspace is as it is, above all else, with the remedy as a button.
import { command, element, icon } from '../frame/dom.js';
import { amount, duration, gibibytes, quoted, time } from '../frame/format.js';
import { loadedOf } from '../shared/progress.js';
import { PHASES, idleOf } from '../shared/workspace_states.js';
import { actionButton } from './actions.js';
import { limitText } from './facts.js';

const KEPT = 'Files under /work and what was installed in it are as they were.';
const GIB_SIZE = 2 ** 30;

export function noticeOf(kind, title, text, { buttons = [], cmd = '', code = '' } = {}) {
  return element('div', { class: `notice ${kind}` }, icon(kind ? 'warning' : 'info'),
    element('div', element('p', element('b', title), ' ', ...text),
      buttons.length > 0 && element('div.row', ...buttons), cmd && command(cmd), code && element('span.code', code)));
}

// The notices of a record, the gravest first. `patchAndStart(patch)` edits it and starts it; `pull` gets its image.
/** @param {Api.Workspace} record */
export function reasonsOf(record, tools) {
  const { status } = record;
  if (status === 'creating') return [creating(record)];
  if (status === 'running') return [...whileRunning(record), ...warned(record)];
  if (status !== 'stopped' && status !== 'failed') return [];
  return [whyStopped(record, tools), notStarted(record), imageMissing(record, tools), ...warned(record)].filter(
    Boolean
  );
}

// What will not work in it, though it starts.
const warned = ({ warnings = [] }) =>
  warnings.map(({ code, message, hint }) => noticeOf('warn', 'A warning:', [`${message}.`], { cmd: hint, code }));

// ---- it is on its way ----

export function creating({ operation, status_reason: code, template }) {
  const { phase, progress, status } = operation ?? {};
  const title = code === 'upgrade'
    ? `It gets a new container, of revision ${template.newer_revision ?? template.revision}.`
    : 'It is being created.';
  return element('div.notice', icon('info'),
    element('div', element('p', element('b', title), ' ', PHASES[status === 'queued' ? 'queued' : phase] ?? ''),
      ...loadedOf(progress)));
}

// ---- it runs, but ----

/** @param {Api.Workspace} record */
function whileRunning(record) {
  const { health, limits_missing: missing } = record;
  const idle = idleOf(record);
  return [
    health === 'gpu_lost'
    && noticeOf('danger', 'It has lost its GPU.', [
      'The driver does not answer for it any more; a restart gives it another one, if one is free.',
    ], { buttons: [actionButton('restart', 'Restart it', { kind: 'sm', key: 'remedy' })], code: 'gpu_lost' }),
    idle?.action === 'stop'
    && noticeOf('warn', 'It is idle.', ['Quiet for ', time(idle.since, 'age'), '; stopped in ',
      time(idle.ends, 'until'), ' unless something happens in it.'], {
      buttons: [actionButton('keep', 'Keep it for 12 h', { kind: 'sm', key: 'remedy' })],
    }),
    missing.length > 0
    && noticeOf('warn', 'This host does not apply all its limits:', [
      `${limitText(missing)}. It may use more than is written here.`,
    ]),
  ].filter(Boolean);
}

// ---- it does not run ----

function logsLink({ name }) {
  return element('a.btn.sm.quiet', { href: `/workspaces/${encodeURIComponent(name)}/logs`,
    'data-cmd': `svc ws logs ${quoted(name)} --tail 200`, 'data-key': 'output' }, 'Its last output');
}

const startButton = (label, kind = 'sm') => actionButton('start', label, { kind, key: 'remedy' });

const WHY = {
  oom_killed: (record, tools) =>
    noticeOf('danger', 'Killed by its memory limit.', [`${memoryText(record)}${exitText(record)}`, ...when(record),
      KEPT], moreMemory(record, tools)),
  container_exited: record =>
    record.exit_code
      ? noticeOf('danger', `Its command ended with ${record.exit_code},`, [...when(record, ''), KEPT], {
        buttons: [startButton('Start it again'), logsLink(record)],
        code: 'container_exited',
      })
      : noticeOf('', 'Its command has ended', [...when(record, ''),
        'It did what it was made for, and there is nothing left to run in it.'], {
        buttons: [startButton('Start it again'), logsLink(record)],
        code: 'container_exited',
      }),
  idle_policy: record =>
    noticeOf('', 'Stopped: idle.', [idleText(record), ...when(record), KEPT], {
      buttons: [startButton('Start it again')],
      code: 'idle_policy',
    }),
  admin_stopped: record =>
    noticeOf('warn', 'Stopped by an administrator', [...when(record, ''), KEPT], {
      buttons: [startButton('Start it again')],
      code: 'admin_stopped',
    }),
  host_reboot: (record, tools) =>
    noticeOf('warn', 'The host was rebooted', [...when(record, ''), KEPT], afterReboot(record, tools)),
  gpu_unavailable: record =>
    noticeOf('warn', 'No GPU was free.', when(record), { buttons: [startButton('Try again')],
      code: 'gpu_unavailable' }),
  start_timeout: record =>
    noticeOf('danger', 'Its start took too long.', [...when(record), KEPT], {
      buttons: [startButton('Try again'), logsLink(record)],
      code: 'start_timeout',
    }),
  engine_error: record =>
    noticeOf('danger', 'The engine failed', [...when(record, ''), KEPT], {
      buttons: [startButton('Try again'), logsLink(record)],
      code: 'engine_error',
    }),
};

// Reasons that the failure of the last start says better.
const SAID_BETTER = ['engine_error', 'start_timeout', 'gpu_unavailable'];

/** @param {Api.Workspace} record */
function whyStopped(record, tools) {
  const { status, status_reason: code, last_error: failure } = record;
  if (WHY[code] && !(failure && SAID_BETTER.includes(code))) return WHY[code](record, tools);
  if (status === 'failed' && !failure)
    return noticeOf('danger', 'It failed', [...when(record, ''), KEPT], {
      buttons: [startButton('Try again'), logsLink(record)],
      code: code ?? '',
    });
  if (code && code !== 'user_requested' && !failure)
    return noticeOf('warn', `Stopped: ${code.replaceAll('_', ' ')}`, when(record, ''), { code });
  return null;
}

/** @param {Api.Workspace} record */
function when(record, before = '') {
  const at = record.stopped_at ?? record.status_since;
  return [before, time(at, 'ago'), '. '];
}

const exitText = ({ exit_code: code }) => code === null ? '' : `exit code ${code}, `;
const memoryText = ({ resources }) =>
  resources.memory_bytes === null
    ? 'The host had no more for it; '
    : `It had ${gibibytes(resources.memory_bytes)} GiB and wanted more; `;
const idleText = ({ idle }) =>
  idle.after_minutes === null ? '' : `It had been quiet for ${duration(idle.after_minutes * 60)}; `;

// The next power of two above it, in GiB.
export function nextMemory(bytes) {
  return 2 ** (Math.floor(Math.log2(bytes / GIB_SIZE)) + 1) * GIB_SIZE;
}

/** @param {Api.Workspace} record */
function moreMemory(record, { patchAndStart }) {
  const { name, resources } = record;
  if (resources.memory_bytes === null)
    return { buttons: [startButton('Start it again'), logsLink(record)], code: 'oom_killed' };
  const bytes = nextMemory(resources.memory_bytes);
  const patch = { resources: { memory_bytes: bytes } };
  const cmd = editAndStart(name, patch);
  return {
    buttons: [patchButton(`Give it ${amount(bytes / GIB_SIZE)} GiB and start`, cmd, () => patchAndStart(patch)),
      logsLink(record)],
    cmd,
    code: 'oom_killed',
  };
}

/** @param {Api.Workspace} record */
function afterReboot(record, { patchAndStart }) {
  const patch = { restart_on_boot: true };
  const both = !record.restart_on_boot
    && patchButton('Start it, and after each reboot', editAndStart(record.name, patch), () => patchAndStart(patch),
      'always');
  return { buttons: [startButton('Start it again'), both].filter(Boolean), code: 'host_reboot' };
}

const editAndStart = (name, patch) =>
  `svc ws edit ${quoted(name)} --file - <<< '${JSON.stringify(patch)}' && svc ws start ${quoted(name)}`;

function patchButton(label, cmd, act, key = 'remedy') {
  return element('button.btn.sm', { 'data-key': key, 'data-cmd': cmd, on: { click: act } }, label);
}

// The last start failed: what it said.
/** @param {Api.Workspace} record */
function notStarted(record) {
  const { last_error: failure, status_reason: code } = record;
  if (!failure) return null;
  const text = failure.message.charAt(0).toUpperCase() + failure.message.slice(1);
  const texts = [/[.!?]$/.test(text) ? text : `${text}.`, ' '];
  return noticeOf(failure.code === 'gpu_unavailable' ? 'warn' : 'danger', 'It was not started.', [...texts,
    time(failure.at, 'ago'), '.'], {
    buttons: WHY[code] && !SAID_BETTER.includes(code) ? [] : [startButton('Try again'), logsLink(record)],
    code: failure.code,
  });
}

/** @param {Api.Workspace} record */
function imageMissing(record, { pull }) {
  const { image_status: status, template, allowed_actions: allowed } = record;
  if (status !== 'missing' || !allowed.includes('start') || template.newer_revision) return null;
  const cmd = `svc image pull ${quoted(template.name)} --wait`;
  return noticeOf('warn', 'Its image is not in your store.', ['It starts when it is there again.'], {
    buttons: [patchButton('Pull the image', cmd, pull, 'pull')],
    cmd,
  });
}
