// What is done with an account: the form of what the API changes, and the commands of what only the host does.
import { all, call } from '../frame/api.js';
import { code, element, find, setAttribute, stateMark } from '../frame/dom.js';
import { ask } from '../frame/asking.js';
import { hostDialog } from '../parts/dialogs.js';
import { formDialog } from '../parts/form_dialog.js';
import { field, setError, plainInput } from '../parts/form.js';
import { adminCommand, apiCommand, isName, withQuery } from './commands.js';
import { askToStop, stopCommand } from './stopping.js';
import { bytesOf } from './quota_format.js';
import { commandText } from '../frame/commands.js';
import {
  ADMIN_CREATE_USER,
  ADMIN_DELETE_USER,
  ADMIN_EDIT_USER,
  ADMIN_REVOKE_TOKENS,
  ADMIN_SET_PASSWORD,
} from '../generated/actions.js';

const ROLE = 'The root helper goes by a list of its own, which nothing that comes over the network can change: also '
  + 'whoever has stolen the session of an administrator cannot make another one.';

// The person's name and the quota: what is changed, and nothing else, is sent.
/** @param {Api.AccountUsage} account */
export function editUser(account, policies) {
  const { name } = account;
  const person = plainInput('', { value: account.display_name, maxlength: '128', autocapitalize: null });
  const quota = element('select.input.mono',
    policies.map(policy =>
      element('option', { value: policy.name, selected: policy.name === (account.quota ?? 'default') }, policy.name)
    ));
  const ofQuota = field('quota', 'Quota', quota, { help: '' });
  const follow = () => {
    find('.help', ofQuota).textContent = limitsOf(policies.find(policy => policy.name === quota.value));
  };
  quota.addEventListener('input', follow);
  follow();
  const changes = () => {
    const found = {};
    if (person.value.trim() !== account.display_name) found.display_name = person.value.trim();
    if (quota.value !== (account.quota ?? 'default')) found.quota = quota.value === 'default' ? null : quota.value;
    return found;
  };
  return formDialog({
    title: `Edit ${name}`,
    action: 'Save',
    fields: [field('display_name', 'Full name', person), ofQuota,
      element('p.help', account.superuser ? 'An administrator. ' : 'An ordinary user. ',
        'The role is changed on the host: ',
        code(adminCommand(ADMIN_EDIT_USER, name, account.superuser ? '--no-superuser' : '--superuser')))],
    commandOf: () => apiCommand('PATCH', `/api/users/${name}`, changes()),
    send: () => call('PATCH', `/api/users/${encodeURIComponent(name)}`, { body: changes() }),
  });
}

/** @type {[Api.LimitKey, string, (amount: number) => string][]} */
const LIMITS = [['max_workspaces', 'workspaces', String], ['max_running', 'running', String], ['max_gpus', 'GPUs',
  String], ['max_cpu', 'CPUs', String], ['max_memory_bytes', 'memory', bytesOf], ['max_image_bytes', 'images',
  bytesOf]];

/** @param {Api.QuotaPolicy} policy */
function limitsOf(policy) {
  if (!policy) return '';
  const text = LIMITS.filter(([key]) => policy[key] !== null).map(([key, label, form]) =>
    `${form(policy[key])} ${label}`
  );
  return text.length ? `At most ${text.join(', ')}. From the next start on.` : 'No limits.';
}

// A new account: made on the host, so that this form makes the command.
export function newUser() {
  const name = plainInput('mono', { placeholder: 'ada', maxlength: '256' });
  const person = element('input.input', { autocomplete: 'off', placeholder: 'Ada Lovelace', maxlength: '128' });
  const role = element('input', { type: 'checkbox', id: 'f-superuser', name: 'superuser' });
  const line = element('code');
  const follow = () => {
    const isGood = isName(name.value);
    setError(name, name.value === '' || isGood
      ? ''
      : 'The name of a Linux account: letters, digits, . _ - and @, beginning with a letter, a digit or _, '
        + 'and not of digits alone.');
    line.textContent = commandText([ADMIN_CREATE_USER, isGood && name.value, ['--display-name', person.value.trim()],
      role.checked && '--superuser']);
  };
  const fields = element('div.stack-4', { on: { input: follow } },
    field('name', 'Name', name, { help: 'The Linux account is made too where there is none.' }),
    field('display_name', 'Full name', person),
    element('label.check', { for: 'f-superuser' }, role, element('span', 'An administrator of the service')));
  follow();
  hostDialog({
    title: 'New account',
    commands: [],
    extra: [fields, element('div.cmd', line)],
    paragraphs: [
      'Accounts are made on the host, by root: a service account stands on a Linux account, with subordinate '
      + 'uids, lingering, and a place in the enrolment list. The command asks for the service password, or reads '
      + 'it from standard input.',
    ],
  });
  name.focus();
}

const ON_THE_HOST = {
  password: ({ name }) => ({
    title: `Set a password for ${name}`,
    commands: [adminCommand(ADMIN_SET_PASSWORD, name)],
    paragraphs: [
      'The service password, not the Linux one. The command asks for it, or reads it from standard input; all '
      + 'sessions and tokens of the account end. A person changes the own one here, in Settings.',
      'Over HTTPS nobody sets the password of another: whoever had stolen a session could then sign in as anybody.',
    ],
  }),
  role: ({ name, superuser }) => ({
    title: superuser ? `Make ${name} an ordinary user` : `Make ${name} an administrator`,
    commands: [adminCommand(ADMIN_EDIT_USER, name, superuser ? '--no-superuser' : '--superuser')],
    paragraphs: [ROLE, superuser
      ? 'Sessions end.'
      : 'Sessions end. A password that is too short for an administrator is closed until another one is set, '
        + "or the account is an ordinary user's again."],
  }),
  tokens: ({ name, tokens }) => ({
    title: `Revoke all tokens of ${name}`,
    commands: [adminCommand(ADMIN_REVOKE_TOKENS, name)],
    paragraphs: [
      `${
        tokens === 1 ? 'One token is' : `${tokens} tokens are`
      } refused from then on. The password and open sessions stay.`,
    ],
  }),
  delete: ({ name }) => ({
    title: `Delete the account ${name}`,
    commands: [adminCommand(ADMIN_DELETE_USER, name)],
    paragraphs: ['Done on the host, by root. The command says first what goes and what stays, and asks.',
      'What goes: its workspaces, images, private templates, tokens and sessions. What stays: the Linux '
      + 'account with its home and the files of the workspaces, and the rows of the audit.'],
  }),
};

export const isOnTheHost = kind => kind in ON_THE_HOST;
/** @param {Api.AccountUsage} account */
export const showOnTheHost = (kind, account) => hostDialog(ON_THE_HOST[kind](account));

export function askToDisable({ name, running }) {
  const runs = running
    ? [
      `What runs goes on: ${
        running === 1 ? 'one workspace' : `${running} workspaces`
      }. Stop them under "Workspaces of ${name}".`,
    ]
    : [];
  return ask({ title: `Disable ${name}?`, paragraphs: [
    `Nobody can use the account until it is enabled. Its sessions and tokens end at once. Its files and `
    + `workspaces stay.`,
    ...runs,
  ], action: `Disable ${name}`, cmd: apiCommand('PATCH', `/api/users/${name}`, { disabled: true }), danger: true });
}

// ---- workspaces of an account: that they are there, and an end to them; what is inside is the owner's alone ----

export async function showWorkspaces({ name }) {
  const list = element('div.stack-2', { 'aria-busy': true });
  hostDialog({ title: `Workspaces of ${name}`, paragraphs: [], commands: [['ws list', '--owner', name]],
    extra: [list] });
  const read = async () => {
    const items = await all(withQuery('/api/workspaces', { owner: name, sort: 'name' }));
    setAttribute(list, 'aria-busy', null);
    list.replaceChildren(...(items.length ? items.map(row) : [element('p.muted', 'None.')]));
  };
  const row = workspace => {
    const cmd = stopCommand({ id: workspace.id, owner: name });
    const stop = element('button.btn.sm.push', { 'aria-label': `Stop ${workspace.name}`, cmd, title: commandText(cmd),
      click: () => press(stop, workspace) }, 'Stop');
    return element('div.row', element('span.name.ref', workspace.name),
      stateMark(workspace.status === 'running' ? 'running' : workspace.status === 'failed' ? 'failed' : 'stopped',
        workspace.status), workspace.allowed_actions.includes('stop') && workspace.status === 'running' && stop);
  };
  const press = async (button, workspace) => {
    if (button.getAttribute('aria-busy') || !await askToStop({ ...workspace, owner: name })) return;
    setAttribute(button, 'aria-busy', true);
    try {
      await call('POST', withQuery(`/api/workspaces/${encodeURIComponent(workspace.id)}/stop`, { owner: name }), {
        body: {},
      });
      await read();
    } catch (error) {
      setAttribute(button, 'aria-busy', null);
      list.prepend(element('p.is-danger', { role: 'alert' }, error.message));
    }
  };
  try {
    await read();
  } catch (error) {
    list.replaceChildren(element('p.is-danger', { role: 'alert' }, error.message));
  }
}
