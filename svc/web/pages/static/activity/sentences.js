// Rows of the audit in words: what was done, to what, and how it ended.
import { element } from '../frame/dom.js';
import { byteSize, counted, duration } from '../frame/format.js';
import { reason } from '../shared/reasons.js';
import { editedText } from '../shared/edited_fields.js';

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

// [did, to do, what to]: "Started train-7b", "Tried to start train-7b", "grace started your train-7b".
export const SENTENCES = {
  'admin.audit_archive': ['Archived the audit up to', 'archive the audit up to', thing],
  'admin.create_user': ['Created the account', 'create the account', thing],
  'admin.delete_user': ['Deleted the account', 'delete the account', thing],
  'admin.move_store': ['Moved the store of', 'move the store of', thing],
  'admin.edit_user': ['Changed the account', 'change the account', thing],
  'admin.license_install': ['Installed the licence', 'install the licence', thing],
  'admin.new_secret': ['Made new secrets of the service', 'make new secrets of the service', none],
  'admin.quota_delete': ['Deleted the quota', 'delete the quota', thing],
  'admin.quota_set': ['Set the quota', 'set the quota', thing],
  'admin.registries': ['Changed which registries are allowed', 'change which registries are allowed', none],
  'admin.registries.login': ['Signed in to the registry', 'sign in to the registry', thing],
  'admin.registries.logout': ['Signed out of the registry', 'sign out of the registry', thing],
  'admin.restore': ['Restored the backup', 'restore the backup', thing],
  'admin.retire_user': ['Retired the account', 'retire the account', row => [mono(row.detail.was ?? row.target)]],
  'admin.revoke_tokens': ['Revoked all tokens of', 'revoke all tokens of', thing],
  'admin.set_password': ['Set the password of', 'set the password of', thing],
  'admin.template_import': ['Imported the template', 'import the template', thing],
  'admin.update_apply': ['Updated the service to', 'update the service to', thing],
  'audit.count': ['Listed files', 'list files',
    ({ detail }) => [` ${counted(detail.calls ?? 0, 'more time')}, counted together`]],
  'auth.login': ['Signed in', 'sign in', none],
  'auth.logout': ['Signed out', 'sign out', none],
  'auth.password': ['Changed the password', 'change the password', none],
  'auth.session_end': ['Ended', 'end',
    row => [row.detail.ended === undefined ? 'a session' : counted(row.detail.ended, 'session')]],
  'disk.measure': ['Had the disks measured', 'have the disks measured', thing],
  'fs.archive': ['Loaded the folder', 'load the folder', placed],
  'fs.download': ['Loaded', 'load', placed],
  'fs.list': ['Listed', 'list', row => [mono(row.target)]],
  'fs.mkdir': ['Made the folder', 'make the folder', placed],
  'fs.move': ['Moved', 'move',
    row => joinedBy('to', mono(row.target), ...(row.detail.to ? [mono(row.detail.to)] : []))],
  'fs.read': ['Read', 'read', placed],
  'fs.remove': ['Removed', 'remove',
    row => [mono(row.target),
      ...(row.detail.removed > 1 ? [`, ${counted(row.detail.removed, 'entry', 'entries')}`] : [])]],
  'fs.roots': ['Listed the file roots', 'list the file roots', none],
  'fs.upload': ['Uploaded', 'upload', placed],
  'image.build': ['Built the image of', 'build the image of', thing],
  'image.delete': ['Removed the image', 'remove the image', row => [mono(row.target)]],
  'image.prune': ['Removed unused images', 'remove unused images', none],
  'image.pull': ['Pulled the image of', 'pull the image of', thing],
  'image.remove': ['Removed the image', 'remove the image', row => [mono(row.target)]],
  'operation.cancel': ['Cancelled', 'cancel', row => ['a ', nameOf(row)]],
  'quota.delete': ['Deleted the quota', 'delete the quota', thing],
  'quota.set': ['Set the quota', 'set the quota', thing],
  'template.clone': ['Cloned a template as', 'clone a template as', thing],
  'template.create': ['Created the template', 'create the template', thing],
  'template.delete': ['Deleted the template', 'delete the template',
    row => [mono(row.detail.name || row.target_name || row.target)]],
  'template.disable': ['Disabled the template', 'disable the template', thing],
  'template.edit': ['Changed the template', 'change the template',
    row => [nameOf(row), ...(row.detail.revision ? [`, revision ${row.detail.revision}`] : [])]],
  'template.enable': ['Enabled the template', 'enable the template',
    row => [nameOf(row), ...(row.detail.revision ? [`, revision ${row.detail.revision}`] : [])]],
  'template.import': ['Imported the template', 'import the template', thing],
  'terminal.attach': ['Returned to a terminal of', 'return to a terminal of', thing],
  'terminal.close': ['Closed a terminal of', 'close a terminal of', thing],
  'terminal.open': ['Opened a terminal of', 'open a terminal of', thing],
  'token.create': ['Created the token', 'create the token', token],
  'token.revoke': ['Revoked the token', 'revoke the token', token],
  'user.edit': ['Changed the account', 'change the account', thing],
  'workspace.create': ['Created', 'create', thing],
  'workspace.delete': ['Deleted', 'delete', thing],
  'workspace.edit': ['Changed', 'change',
    row => [nameOf(row), ...(editedText(row.detail.keys) ? [`: ${editedText(row.detail.keys)}`] : [])]],
  'workspace.exec': ['Ran', 'run', program],
  'workspace.extend': ['Kept', 'keep',
    row => [nameOf(row), ...(row.detail.hours ? [` for ${row.detail.hours} h`] : [])]],
  'workspace.idle': ['was idle', 'be idle', none],
  'workspace.launcher_end': ['has ended', 'end', none],
  'workspace.launcher_start': ['Started', 'start', inside('launcher')],
  'workspace.launcher_stop': ['Stopped', 'stop', inside('launcher')],
  'workspace.port_add': ['Added a port to', 'add a port to', thing],
  'workspace.port_remove': ['Removed the port', 'remove the port', inside('port')],
  'workspace.reconcile': ['was found', 'be found', none],
  'workspace.rename': ['Renamed', 'rename',
    ({ detail }) => joinedBy('to', mono(detail.before ?? ''), mono(detail.name ?? ''))],
  'workspace.restart': ['Restarted', 'restart', thing],
  'workspace.setup': ['Set up', 'set up', thing],
  'workspace.start': ['Started', 'start', thing],
  'workspace.stop': ['Stopped', 'stop', thing],
  'workspace.upgrade': ['Moved to its newest revision:', 'move to its newest revision:', thing],
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
  const [did, toDo, to] = SENTENCES[row.action] ?? [row.action, row.action, thing];
  const isOwn = row.user === me;
  const verb = isDone(row) ? did : row.outcome === 'begun' ? `Began to ${toDo}` : `Tried to ${toDo}`;
  const rest = to(row);
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
  return [via === 'token' && detail.token ? `token ${detail.token}` : THROUGH[via] ?? via, address].filter(Boolean)
    .join(', ');
}
