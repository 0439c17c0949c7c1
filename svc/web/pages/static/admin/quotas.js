// The quotas: what accounts may have, and how many have each.
import { all, call } from '../frame/api.js';
import { announce, answer } from '../frame/notices.js';
import { startAdmin } from './page.js';
import { isVisible, refreshSoon, perform } from '../screen/page.js';
import { element, find, setAttribute } from '../frame/dom.js';
import { ask } from '../frame/asking.js';
import { isOffline } from '../frame/frame.js';
import { setCommand } from '../frame/foot.js';
import { apiCommand, withQuery } from './commands.js';
import { holdersOf, quotaForm } from './quota_form.js';
import { bytesOf } from './quota_format.js';
import { createList } from './lists.js';
import { rowButton } from '../parts/row_buttons.js';
import { skeletonOf, cell } from '../parts/tables.js';
import { amount, byName, counted } from '../frame/format.js';

const HEADS = ['Quota', ['Accounts', 'r'], ['Workspaces', 'r'], ['Running', 'r'], ['GPUs', 'r'], ['CPUs', 'r'], [
  'Memory',
  'r',
], ['Images', 'r'], ''];
/** @type {[string, Api.LimitKey, (amount: number) => string][]} */
const COLUMNS = [['Workspaces', 'max_workspaces', String], ['Running', 'max_running', String], ['GPUs', 'max_gpus',
  String], ['CPUs', 'max_cpu', amount], ['Memory', 'max_memory_bytes', bytesOf], ['Images', 'max_image_bytes',
  bytesOf]];
const list = createList({ title: 'Quotas', heads: HEADS, label: 'Search quotas', placeholder: 'Name',
  filters: { all: 'All', used: 'In use', unused: 'Without accounts' },
  tests: { all: () => true, used: policy => policy.users > 0, unused: policy => policy.users === 0 },
  textsOf: policy => [policy.name], none: 'No quota matches.',
  foot: 'Workspaces count when they are made; running, GPUs, CPUs and memory at a start; images before a '
    + 'pull or a build. What runs goes on when its quota shrinks.' });

const known = { policies: [], accounts: [] };
const doing = new Set();

async function read(options) {
  [known.policies, known.accounts] = await Promise.all([all('/api/admin/quotas', options),
    all('/api/admin/users', options)]);
}

function show() {
  if (!find('#screen table')) find('#screen').replaceChildren(list.filtersNow(showList), list.panelNow());
  showList();
}

function showList() {
  list.show(known.policies,
    policies =>
      policies.map(policy => ({ id: policy.name, key: JSON.stringify([policy, isOffline(), doing.has(policy.name)]),
        build: () => rowOf(policy) })
      ), showList);
  find('.lede').textContent = counted(known.policies.length, 'quota');
  setCommand(apiCommand('GET', withQuery('/api/admin/quotas', { q: list.view.text.trim() })));
}

/** @param {Api.QuotaPolicy} policy */
function rowOf(policy) {
  const { name, users } = policy;
  const path = `/api/admin/quotas/${encodeURIComponent(name)}`;
  const options = press => ({ isOffline: isOffline() || doing.has(name), press });
  const limit = ([label, key, form]) =>
    cell(label, policy[key] === null ? 'r muted' : 'r', policy[key] === null ? 'no limit' : form(policy[key]));
  return element('tr', { tabindex: '-1' }, cell(null, '', element('span.name.ref', name)),
    cell('Accounts', 'r', String(users)), ...COLUMNS.map(limit),
    cell(null, 'c-act',
      element('div.row',
        rowButton('edit', 'Edit', name, apiCommand('PUT', path, limitsOnly(policy)),
          options(() => act('edit', policy))), removeButton(policy, path, options))));
}

/** @param {Api.QuotaPolicy} policy */
const limitsOnly = policy => Object.fromEntries(COLUMNS.map(([, key]) => [key, policy[key]]));

// What cannot be removed says why, and stays where it is.
/** @param {Api.QuotaPolicy} policy */
function removeButton(policy, path, options) {
  const { name, users } = policy;
  const why = name === 'default'
    ? 'It holds for all accounts without another.'
    : users > 0
    ? `${counted(users, 'account')} ${users === 1 ? 'has' : 'have'} it.`
    : '';
  const button = rowButton('remove', 'Remove', name, apiCommand('DELETE', path), options(pressed => {
    if (!why) act('remove', policy, pressed);
  }));
  if (!why) return button;
  const id = `why-${name}`;
  for (const [key, value] of Object.entries({ 'aria-disabled': true, 'aria-describedby': id, title: why }))
    setAttribute(button, key, value);
  return [button, element('span.vh', { id }, why)];
}

/** @param {Api.QuotaPolicy} policy */
async function act(kind, policy, button = null) {
  if (isOffline() || doing.has(policy?.name)) return;
  answer(null);
  if (kind === 'remove') {
    await remove(policy, button);
    return;
  }
  const written = await quotaForm(policy, known.policies, known.accounts);
  if (!written) return;
  known.policies = [...known.policies.filter(one => one.name !== written.name), written].sort((a, b) =>
    byName(a.name, b.name)
  );
  showList();
  announce(`${written.name}: Saved`);
  refreshSoon();
}

async function remove({ name }, button) {
  const path = `/api/admin/quotas/${encodeURIComponent(name)}`;
  if (!await ask({ title: `Remove the quota ${name}?`,
    paragraphs: [holdersOf(name, known.accounts).length ? 'Accounts have it.' : 'No account has it.'],
    action: `Remove ${name}`, cmd: apiCommand('DELETE', path), danger: true })) return;
  doing.add(name);
  const isDone = await perform(button, { what: `${name} was not removed.`, done: `${name}: Removed` },
    () => call('DELETE', path));
  doing.delete(name);
  if (isDone) known.policies = known.policies.filter(policy => policy.name !== name);
  showList();
}

find('[data-key=new]').addEventListener('click', () => {
  if (isVisible()) act('new', null);
});
await startAdmin({ read, show,
  loading: () => skeletonOf('Quotas', HEADS, [['2'], ['1'], ['1'], ['1'], ['1'], ['1'], ['1'], ['1'], []], 4),
  failed: 'The quotas could not be read.' });
