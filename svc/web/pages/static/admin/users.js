// The accounts: who may use the host, how much each has, and what is to be done about one.
import { all, call, outcomes } from '../frame/api.js';
import { announce, answer } from '../frame/notices.js';
import { me, startAdmin } from './page.js';
import { refreshSoon, perform } from '../screen/page.js';
import { askToDisable, editUser, isOnTheHost, newUser, showOnTheHost, showWorkspaces } from './user_dialogs.js';
import { element, find } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { setCommand } from '../frame/foot.js';
import { apiCommand, withQuery } from './commands.js';
import { createList } from './lists.js';
import { skeletonOf } from '../parts/tables.js';
import { remedyOf, rowsOfUser } from './user_row.js';
import { counted } from '../frame/format.js';

const HEADS = ['Account', 'State', 'Quota', 'GPUs now', 'Workspaces', ['Images', 'r'], 'Password', 'Last seen', ''];
const list = createList({ title: 'Accounts', heads: HEADS, label: 'Search accounts', placeholder: 'Name or person',
  filters: { all: 'All', need: 'Needs attention', disabled: 'Disabled' }, tests: {
    all: () => true,
    need: account => remedyOf(account) !== null,
    disabled: account => account.disabled && !account.retired,
  }, textsOf: account => [account.name, account.display_name], none: 'No account matches.' });

const known = { accounts: /** @type {Api.AccountUsage[]} */ ([]), policies: /** @type {Api.QuotaPolicy[]} */ ([]),
  chips: new Map() };
const doing = new Set();

async function read(options) {
  const [accounts, policies, capacity] = await outcomes([
    all('/api/admin/users?sort=name', options),
    all('/api/admin/quotas', options),
    call('GET', '/api/workspaces/capacity', options),
  ]);
  if (accounts.error) throw accounts.error;
  known.accounts = accounts.value;
  known.policies = policies.value ?? known.policies;
  known.chips = capacity.value ? chipsOf(capacity.value.gpus) : null; // without it: their number
}

// The GPUs that each account holds by leases.
function chipsOf(gpus) {
  const found = new Map();
  for (const { index, uuid, holders } of gpus) {
    for (const { owner } of holders.filter(holder => !holder.outside))
      found.set(owner, [...(found.get(owner) ?? []), { index, uuid }]);
  }
  return found;
}

function show() {
  if (!find('#screen table'))
    find('#screen').replaceChildren(list.filtersNow(showList), list.panelNow(),
      element('p.muted.small',
        'Disabling, quotas and names are done here. Who has an account, who is an administrator and whose '
          + 'password is set is decided on the host by root: the buttons for it have the command.'));
  showList();
}

function showList() {
  const { accounts } = known;
  const context = account => ({ chips: known.chips && (known.chips.get(account.name) ?? []), isOffline: isOffline(),
    doing: doing.has(account.name), me: me(), act });
  list.show(accounts, found => found.flatMap(account => rowsOfUser(account, context(account))), showList);
  const administrators = accounts.filter(account => account.superuser && !account.disabled).length;
  find('.lede').textContent = `${counted(accounts.length, 'account')}, ${counted(administrators, 'administrator')}`;
  setCommand(apiCommand('GET', withQuery('/api/admin/users', { q: list.view.text.trim() })));
}

/** @param {Api.AccountUsage} account */
async function act(kind, account, button) {
  if (isOffline() || doing.has(account.name)) return;
  const { name } = account;
  if (isOnTheHost(kind)) {
    showOnTheHost(kind, account);
    return;
  }
  if (kind === 'workspaces') {
    await showWorkspaces(account);
    refreshSoon();
    return;
  }
  if (kind === 'edit') {
    answer(null);
    const edited = await editUser(account, known.policies);
    if (edited) {
      take(edited);
      announce(`${name}: Saved`);
      refreshSoon();
    }
    return;
  }
  if (kind === 'disable' && !await askToDisable(account)) return;
  doing.add(name);
  showList();
  const disabled = kind === 'disable';
  await perform(button, { what: `${name} was not ${kind}d.`, done: `${name}: ${disabled ? 'Disabled' : 'Enabled'}` },
    async () => {
      take(await call('PATCH', `/api/users/${encodeURIComponent(name)}`, { body: { disabled } }));
    });
  doing.delete(name);
  showList();
}

// What the API says an account is now; its usage stays until it is read.
function take(record) {
  known.accounts = known.accounts.map(account => (account.name === record.name ? { ...account, ...record } : account));
  showList();
}

find('[data-key=new]').addEventListener('click', newUser);
await startAdmin({ read, show,
  loading: () => skeletonOf('Accounts', HEADS, [['3'], ['2'], ['1'], ['2'], ['1'], ['1'], ['1'], ['1'], []]),
  failed: 'The accounts could not be read.' });
