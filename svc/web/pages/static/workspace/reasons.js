// Why a workspace is as it is, above all else, with the remedy as a button.
import { command, element, notice } from '../frame/dom.js';
import { amount, duration, gibibytes, time } from '../frame/format.js';
import { IMAGE_PULL } from '../generated/actions.js';
import { loadedOf } from '../parts/progress.js';
import { commandOf, editCommand } from '../parts/workspace_actions.js';
import { PHASES, idleOf } from '../parts/workspace_states.js';
import { actionButton } from './actions.js';
import { limitText } from './facts.js';

const KEPT = 'Files under /work and what was installed in it are as they were.';
const GIB_SIZE = 2 ** 30;

export const noticeOf = (kind, title, text, { buttons = [], cmd = null, code = '' } = {}) =>
  notice(kind, kind ? 'warning' : 'info', element('p', element('b', title), ' ', ...text),
    buttons.length > 0 && element('div.row', ...buttons), cmd && command(cmd), code && element('span.code', code));

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
  return notice('', 'info',
    element('p', element('b', title), ' ', PHASES[status === 'queued' ? 'queued' : phase] ?? ''),
    ...loadedOf(progress));
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
    ], { buttons: [actionButton('restart', { label: 'Restart it', kind: 'sm', key: 'remedy' })], code: 'gpu_lost' }),
    idle?.action === 'stop'
    && noticeOf('warn', 'It is idle.', ['Quiet for ', time(idle.since, 'age'), '; stopped in ',
      time(idle.ends, 'until'), ' unless something happens in it.'], {
      buttons: [actionButton('keep', { label: 'Keep it for 12 h', kind: 'sm', key: 'remedy' })],
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
    cmd: ['ws logs', name, '--tail', '200'], key: 'output' }, 'Its last output');
}

const startButton = (label, kind = 'sm') => actionButton('start', { label, kind, key: 'remedy' });

const AGAIN = 'Start it again', RETRY = 'Try again';

// Why it does not run, and since when; `before` and `after` stand around the time, `label` is that of its button.
/** @param {Api.Workspace} record */
const ended = (record, kind, title, label, { before = '', after = KEPT, hasLog = true } = {}) =>
  noticeOf(kind, title, [before, ...when(record), after], { code: record.status_reason,
    buttons: [startButton(label), hasLog && logsLink(record)] });

const WHY = {
  oom_killed: (record, tools) =>
    noticeOf('danger', 'Killed by its memory limit.', [`${memoryText(record)}${exitText(record)}`, ...when(record),
      KEPT], moreMemory(record, tools)),
  container_exited: record =>
    record.exit_code
      ? ended(record, 'danger', `Its command ended with ${record.exit_code},`, AGAIN)
      : ended(record, '', 'Its command has ended', AGAIN, {
        after: 'It did what it was made for, and there is nothing left to run in it.',
      }),
  idle_policy: record => ended(record, '', 'Stopped: idle.', AGAIN, { before: idleText(record), hasLog: false }),
  admin_stopped: record => ended(record, 'warn', 'Stopped by an administrator', AGAIN, { hasLog: false }),
  host_reboot: (record, tools) =>
    noticeOf('warn', 'The host was rebooted', [...when(record), KEPT], afterReboot(record, tools)),
  gpu_unavailable: record => ended(record, 'warn', 'No GPU was free.', RETRY, { after: '', hasLog: false }),
  start_timeout: record => ended(record, 'danger', 'Its start took too long.', RETRY),
  engine_error: record => ended(record, 'danger', 'The engine failed', RETRY),
};

// Reasons that the failure of the last start says better.
const SAID_BETTER = ['engine_error', 'start_timeout', 'gpu_unavailable'];

/** @param {Api.Workspace} record */
function whyStopped(record, tools) {
  const { status, status_reason: code, last_error: failure } = record;
  if (WHY[code] && !(failure && SAID_BETTER.includes(code))) return WHY[code](record, tools);
  if (status === 'failed' && !failure) return ended(record, 'danger', 'It failed', RETRY);
  if (code && code !== 'user_requested' && !failure)
    return noticeOf('warn', `Stopped: ${code.replaceAll('_', ' ')}`, when(record), { code });
  return null;
}

/** @param {Api.Workspace} record */
const when = record => [time(record.stopped_at ?? record.status_since, 'ago'), '. '];

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
    return { buttons: [startButton(AGAIN), logsLink(record)], code: 'oom_killed' };
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
  return { buttons: [startButton(AGAIN), both].filter(Boolean), code: 'host_reboot' };
}

const editAndStart = (name, patch) => [editCommand(name, patch), commandOf('start', name)];

function patchButton(label, cmd, act, key = 'remedy') {
  return element('button.btn.sm', { key, cmd, click: act }, label);
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
    buttons: WHY[code] && !SAID_BETTER.includes(code) ? [] : [startButton(RETRY), logsLink(record)],
    code: failure.code,
  });
}

/** @param {Api.Workspace} record */
function imageMissing(record, { pull }) {
  const { image_status: status, template, allowed_actions: allowed } = record;
  if (status !== 'missing' || !allowed.includes('start') || template.newer_revision) return null;
  const cmd = [IMAGE_PULL, template.name];
  return noticeOf('warn', 'Its image is not in your store.', ['It starts when it is there again.'], {
    buttons: [patchButton('Pull the image', cmd, pull, 'pull')],
    cmd,
  });
}
