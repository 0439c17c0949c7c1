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
import { filtersOf, pagesOf, hasText, showFilters } from '../parts/lists.js';
import { showRows } from '../parts/rows.js';
import { skeletonOf, tableOf } from '../parts/tables.js';
import { remedyOf, rowsOfUser } from './user_row.js';
import { counted } from '../frame/format.js';

const HEADS = ['Account', 'State', 'Quota', 'GPUs now', 'Workspaces', ['Images', 'r'], 'Password', 'Last seen', ''];
const FILTERS = { all: 'All', need: 'Needs attention', disabled: 'Disabled' };
const TESTS = {
  all: () => true,
  need: account => remedyOf(account) !== null,
  disabled: account => account.disabled && !account.retired,
};

const known = { accounts: /** @type {Api.AccountUsage[]} */ ([]), policies: /** @type {Api.QuotaPolicy[]} */ ([]),
  chips: new Map() };
const view = { filter: 'all', text: new URLSearchParams(location.search).get('q') ?? '', pages: 1 };
const doing = new Set();

async function read({ background }) {
  const [accounts, policies, capacity] = await outcomes([
    all('/api/admin/users?sort=name', { background }),
    all('/api/admin/quotas', { background }),
    call('GET', '/api/workspaces/capacity', { background }),
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

function list() {
  return [
    filtersOf({ label: 'Search accounts', placeholder: 'Name or person', filters: FILTERS, view: view,
      again: showList }),
    element('section.panel', { 'aria-label': 'Accounts' }, tableOf('Accounts', HEADS),
      element('p.body.muted', { 'data-none': true, hidden: true }, 'No account matches.'),
      element('footer', { 'data-more': true, hidden: true })),
    element('p.muted.small',
      'Disabling, quotas and names are done here. Who has an account, who is an administrator and whose '
        + 'password is set is decided on the host by root: the buttons for it have the command.'),
  ];
}

function show() {
  if (!find('#screen table')) {
    find('#screen').replaceChildren(...list());
  }
  showList();
}

function showList() {
  const { accounts } = known;
  const found = accounts.filter(account =>
    TESTS[view.filter](account) && hasText(view.text, [account.name, account.display_name])
  );
  const context = account => ({ chips: known.chips && (known.chips.get(account.name) ?? []), isOffline: isOffline(),
    doing: doing.has(account.name), me: me(), act });
  const listed = pagesOf(found, find('[data-more]'), view, showList);
  showRows(find('#screen tbody'), listed.flatMap(account => rowsOfUser(account, context(account))));
  find('[data-none]').hidden = found.length > 0;
  showFilters(view, name => accounts.filter(TESTS[name]).length);
  const administrators = accounts.filter(account => account.superuser && !account.disabled).length;
  find('.lede').textContent = `${counted(accounts.length, 'account')}, ${counted(administrators, 'administrator')}`;
  setCommand(apiCommand('GET', withQuery('/api/admin/users', { q: view.text.trim() })));
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
