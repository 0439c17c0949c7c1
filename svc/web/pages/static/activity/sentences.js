// Rows of the audit in words: what was done, to what, and how it ended.
import { element } from '../frame/dom.js';
import { byteSize, counted, duration, commaList } from '../frame/format.js';
import { SENTENCES } from '../generated/sentences.js';
import { reason } from '../parts/reasons.js';
import { editedText } from '../parts/edited_fields.js';

const mono = text => element('span.mono.small.ref', { dir: 'auto' }, text || '–');
/** @type {(row: {target?: any, target_name?: any}) => Element} */
const nameOf = ({ target, target_name: name }) => mono(name || target);
const joinedBy = (text, ...parts) => parts.flatMap((part, n) => n ? [` ${text} `, part] : [part]);
const sized = bytes => typeof bytes === 'number' ? [`, ${byteSize(bytes)}`] : [];
const none = () => [];
const thing = row => [nameOf(row)];
const placed = row => [mono(row.target), ...sized(row.detail.bytes)];
const inside = key => row => joinedBy('in', mono(String(row.detail[key] ?? '')), nameOf(row));
const token = row => [mono(row.detail.name || row.target)];

function program({ detail, ...row }) {
  const end = [detail.exit_code !== undefined && detail.exit_code !== null && `exit ${detail.exit_code}`,
    typeof detail.seconds === 'number' && duration(detail.seconds)].filter(Boolean);
  return [...joinedBy('in', mono(String(detail.program ?? 'a command')), nameOf(row)), ...end.map(text => `, ${text}`)];
}

// What follows the verb; of the other actions the name of the thing.
export const OBJECTS = {
  'admin.new_secret': none,
  'admin.registries': none,
  'admin.retire_user': row => [mono(row.detail.was ?? row.target)],
  'audit.count': ({ detail }) => [` ${counted(detail.calls ?? 0, 'more time')}, counted together`],
  'auth.login': none,
  'auth.logout': none,
  'auth.password': none,
  'auth.session_end': row => [row.detail.ended === undefined ? 'a session' : counted(row.detail.ended, 'session')],
  'fs.archive': placed,
  'fs.download': placed,
  'fs.list': row => [mono(row.target)],
  'fs.mkdir': placed,
  'fs.move': row => joinedBy('to', mono(row.target), ...(row.detail.to ? [mono(row.detail.to)] : [])),
  'fs.read': placed,
  'fs.remove':
    row => [mono(row.target),
      ...(row.detail.removed > 1 ? [`, ${counted(row.detail.removed, 'entry', 'entries')}`] : [])],
  'fs.roots': none,
  'fs.upload': placed,
  'image.delete': row => [mono(row.target)],
  'image.prune': none,
  'image.remove': row => [mono(row.target)],
  'operation.cancel': row => ['a ', nameOf(row)],
  'template.delete': row => [mono(row.detail.name || row.target_name || row.target)],
  'template.edit': row => [nameOf(row), ...(row.detail.revision ? [`, revision ${row.detail.revision}`] : [])],
  'template.enable': row => [nameOf(row), ...(row.detail.revision ? [`, revision ${row.detail.revision}`] : [])],
  'token.create': token,
  'token.revoke': token,
  'workspace.edit': row => [nameOf(row), ...(editedText(row.detail.keys) ? [`: ${editedText(row.detail.keys)}`] : [])],
  'workspace.exec': program,
  'workspace.extend': row => [nameOf(row), ...(row.detail.hours ? [` for ${row.detail.hours} h`] : [])],
  'workspace.idle': none,
  'workspace.launcher_end': none,
  'workspace.launcher_start': inside('launcher'),
  'workspace.launcher_stop': inside('launcher'),
  'workspace.port_remove': inside('port'),
  'workspace.reconcile': none,
  'workspace.rename': ({ detail }) => joinedBy('to', mono(detail.before ?? ''), mono(detail.name ?? '')),
};

// What the service saw by itself: the thing is what the sentence is about.
const SEEN = {
  'workspace.idle':
    row => [nameOf(row),
      ` was idle${row.detail.after_minutes ? ` for ${duration(row.detail.after_minutes * 60)}` : ''}`],
  'workspace.launcher_end': (
    { detail, ...row },
  ) => [mono(detail.launcher ?? ''), ' in ', nameOf(row),
    ` has ended${Number.isInteger(detail.exit_code) ? ` with ${detail.exit_code}` : ''}`],
  'workspace.reconcile': (
    { detail, outcome, ...row },
  ) => [nameOf(row), ` was found ${outcome}`, detail.reason && reason(detail.reason, detail.exit_code ?? null)
    ? `: ${reason(detail.reason, detail.exit_code ?? null)}`
    : ''],
};

const isDone = ({ outcome }) => ['ok', 'counted'].includes(outcome);
const lower = text => text.charAt(0).toLowerCase() + text.slice(1);

// The sentence of a row, for `me`; an action that has none yet is named as it is.
export function sentence(row, me) {
  if (SEEN[row.action]) return SEEN[row.action](row);
  const [did, toDo] = SENTENCES[row.action] ?? [row.action, row.action];
  const isOwn = row.user === me;
  const verb = isDone(row) ? did : row.outcome === 'begun' ? `Began to ${toDo}` : `Tried to ${toDo}`;
  const rest = (OBJECTS[row.action] ?? thing)(row);
  const text = isOwn
    ? [verb]
    : [element('b.ref', row.user), row.via === 'admin' ? ', on the host, ' : ' ', lower(verb)];
  const yours = !isOwn && row.target_owner === me && rest.length && row.target !== me
    ? ' your '
    : rest.length && !/^ /.test(rest[0])
    ? ' '
    : '';
  return [...text, yours, ...rest];
}

const ENDS = {
  ok: ['ok', 'Done'],
  begun: ['busy', 'Under way'],
  interrupted: ['warn', 'Interrupted'],
  counted: ['ok', 'Counted'],
  stopped: ['warn', 'Stopped'],
  exited: ['warn', 'Ended'],
  gone: ['warn', 'Gone'],
  failed: ['failed', 'Failed'],
  running: ['ok', 'Running'],
  cancelled: ['warn', 'Cancelled'],
};

// How it ended: a kind of state and its word; the code itself belongs into `title`.
export function ending({ action, outcome }) {
  if (action === 'workspace.idle') return ['warn', outcome === 'stop' ? 'Stops' : 'Noted'];
  if (action === 'auth.login' && outcome === 'unauthenticated') return ['failed', 'Wrong password'];
  const text = reason(outcome, null);
  return ENDS[outcome] ?? ['failed', text.charAt(0).toUpperCase() + text.slice(1)];
}

const THROUGH = { socket: 'the host', session: 'a browser', token: 'token', worker: 'svc itself', admin: 'svc admin' };

export function through({ via, address, detail }) {
  return commaList(via === 'token' && detail.token ? `token ${detail.token}` : THROUGH[via] ?? via, address);
}
