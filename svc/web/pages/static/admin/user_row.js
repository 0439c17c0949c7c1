// One row of the accounts, and under it what is to be done about an account that is not complete.
/** @import { MenuItem } from '../parts/menu.js' */
import { command, element, notice, stateMark } from '../frame/dom.js';
import { adminCommand, apiCommand, withQuery } from './commands.js';
import { menuOf } from '../parts/menu.js';
import { rowButton } from '../parts/row_buttons.js';
import { cell } from '../parts/tables.js';
import { counted, formatSize, time, commaList } from '../frame/format.js';
import {
  ADMIN_CREATE_USER,
  ADMIN_DELETE_USER,
  ADMIN_EDIT_USER,
  ADMIN_REVOKE_TOKENS,
  ADMIN_SET_PASSWORD,
} from '../generated/actions.js';

const STATES = {
  READY: ['ok', 'Ready'],
  DISABLED: ['stopped', 'Disabled'],
  PROVISIONING_INCOMPLETE: ['warn', 'Setup incomplete'],
  PROVISIONING_CLEANUP_REQUIRED: ['warn', 'Cleanup required'],
};

// What is to be done about an account: {what, cmd, code}; null where nothing is.
/** @param {Api.AccountUsage} account */
export function remedyOf(account) {
  const { name, retired, status, note, password_closed: isClosed } = account;
  const code = status;
  if (retired)
    return { what: note || 'Its Linux account is gone; its records are kept.',
      cmd: adminCommand(ADMIN_DELETE_USER, name), code };
  if (status === 'PROVISIONING_CLEANUP_REQUIRED')
    return { what: note || 'Its setup failed.', cmd: adminCommand(ADMIN_CREATE_USER, name), code };
  if (status === 'PROVISIONING_INCOMPLETE')
    return { what: note || 'Its setup is not complete; the same command takes the missing steps.',
      cmd: adminCommand(ADMIN_CREATE_USER, name), code };
  if (isClosed)
    return {
      what: 'Its password is too short for an administrator: nobody can sign in with it until another one is set, '
        + "or the account is an ordinary user's again.",
      cmd: adminCommand(ADMIN_SET_PASSWORD, name),
      code: 'PASSWORD_CLOSED',
    };
  return null;
}

/** @param {Api.AccountUsage} account */
export function rowsOfUser(account, context) {
  const { chips, isOffline, doing, me } = context;
  const remedy = remedyOf(account);
  const key = JSON.stringify([account, chips, isOffline, doing, me]);
  const rows = [{ id: account.name, key, build: () => userRow(account, remedy, context) }];
  if (remedy) rows.push({ id: `${account.name} remedy`, key, build: () => remedyRow(account, remedy) });
  return rows;
}

/** @param {Api.AccountUsage} account */
function userRow(account, remedy, context) {
  const { name, display_name: person, superuser, retired, status, quota } = account;
  const [kind, text] = retired ? ['stopped', 'Retired'] : STATES[status] ?? ['warn', status];
  const cmd = apiCommand('GET', withQuery('/api/admin/quotas', { q: quota ?? 'default' }));
  return element('tr', { tabindex: '-1', class: remedy ? 'has-sub' : null },
    cell(null, '',
      element('div.stack',
        element('span.row', element('span.name.ref', name), superuser && element('span.tag.line-tag', 'administrator')),
        person && element('span.muted.small.ref', person))), cell('State', '', stateMark(kind, text)),
    cell('Quota', '',
      element('a.ref', { href: withQuery('/admin/quotas', { q: quota ?? 'default' }), cmd, key: 'quota' },
        quota ?? 'default')), cell('GPUs now', '', ...gpusOf(account, context.chips)),
    cell('Workspaces', 'num soft', ...workspacesOf(account)),
    cell('Images', 'r', account.image_bytes ? formatSize(account.image_bytes) : ''),
    cell('Password', passwordKind(account), passwordOf(account)), cell('Last seen', 'muted small', ...seenOf(account)),
    cell(null, 'c-act', element('div.row', ...buttonsOf(account, context), menuOfUser(account, context))));
}

function gpusOf({ gpus }, chips) {
  if (!gpus) return [];
  if (!chips) return [element('span.num', String(gpus))];
  return [
    element('span.gpus', element('span.vh', chips.length === 1 ? 'GPU ' : 'GPUs '),
      chips.map(({ index, uuid }) =>
        element('span.chip-n.other', { title: uuid }, index === null ? '–' : String(index))
      )),
  ];
}

function workspacesOf({ workspaces, running }) {
  if (!workspaces) return [];
  return running ? [`${running} of ${workspaces} ${running === 1 ? 'runs' : 'run'}`] : [`${workspaces} stopped`];
}

/** @param {Api.AccountUsage} account */
const passwordKind = account => (account.password_closed ? 'small is-warn' : 'small muted');

function passwordOf({ has_password: has, password_closed: isClosed }) {
  return isClosed ? 'closed: too short' : has ? 'set' : 'none';
}

function seenOf({ last_action_at: at, last_login_at: login, sessions, tokens }) {
  const text = commaList(sessions && counted(sessions, 'session'), tokens && counted(tokens, 'token'));
  const title = login
    ? `signed in with the password ${new Date(login).toISOString().slice(0, 16).replace('T', ' ')} UTC`
    : null;
  return [
    element('div.stack', { title }, at ? time(at, 'ago') : element('span', 'never'),
      text && element('span.tiny', text)),
  ];
}

/** @param {Api.AccountUsage} account */
function buttonsOf(account, { isOffline, doing, act }) {
  const { name, retired, status, disabled } = account;
  if (retired) return [];
  const enable = disabled && status === 'DISABLED'
    && rowButton('enable', 'Enable', name, apiCommand('PATCH', `/api/users/${name}`, { disabled: false }), {
      isOffline: isOffline || doing,
      press: button => act('enable', account, button),
      kind: '',
    });
  return [enable,
    rowButton('edit', 'Edit', name, apiCommand('PATCH', `/api/users/${name}`, {}), { isOffline: isOffline || doing,
      press: () => act('edit', account) })];
}

/** @param {Api.AccountUsage} account */
function menuOfUser(account, { isOffline, doing, me, act }) {
  const { name, uid, superuser, retired, disabled } = account;
  const host = (label, kind, cmd, danger = false) => ({ label, cmd, class: danger ? 'danger' : null,
    press: () => act(kind, account) });
  /** @type {MenuItem[]} */
  const items = [{ label: `Audit of ${name}`, cmd: apiCommand('GET', withQuery('/api/admin/audit', { user: name })),
    href: withQuery('/admin/audit', { user: name }) }];
  if (!retired) {
    if (account.workspaces) items.push(host(`Workspaces of ${name}`, 'workspaces', ['ws list', '--owner', name]));
    items.push(null, host('Set a password', 'password', adminCommand(ADMIN_SET_PASSWORD, name)));
    items.push(
      host(superuser ? 'Make an ordinary user' : 'Make an administrator', 'role',
        adminCommand(ADMIN_EDIT_USER, name, superuser ? '--no-superuser' : '--superuser'))
    );
    if (account.tokens) items.push(host('Revoke all tokens', 'tokens', adminCommand(ADMIN_REVOKE_TOKENS, name), true));
  }
  items.push(null);
  const why = name === me ? 'your own account' : uid === 0 ? 'never root' : null, id = why ? `why-${name}` : null;
  if (!disabled)
    items.push({ label: ['Disable', why && element('span.muted.tiny.push', { id }, why)], class: 'danger',
      cmd: apiCommand('PATCH', `/api/users/${name}`, { disabled: true }), isClosed: why !== null,
      'aria-describedby': id, press: () => act('disable', account) });
  if (uid !== 0) items.push(host('Delete the account', 'delete', adminCommand(ADMIN_DELETE_USER, name), true));
  return menuOf(name, items, { isOff: isOffline || doing });
}

function remedyRow({ name }, { what, cmd, code }) {
  return element('tr.sub.plain',
    element('td', { colspan: '9' },
      notice('warn.inset', 'warning',
        element('p.small.ref', element('span.vh', `${name}: `), what.charAt(0).toUpperCase() + what.slice(1)),
        command(cmd), element('span.code', code))));
}
