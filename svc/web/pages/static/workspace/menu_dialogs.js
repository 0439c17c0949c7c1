// What the menu of a workspace opens: another name, and the move to the newest revision of its template.
import { call } from '../frame/api.js';
import { command, element, notice } from '../frame/dom.js';
import { WORKSPACE_RENAME, WORKSPACE_UPGRADE } from '../generated/actions.js';
import { closeButton, openDialog } from '../parts/dialogs.js';
import { formDialog } from '../parts/form_dialog.js';
import { field, plainInput } from '../parts/form.js';
import { tableHead } from '../parts/tables.js';

// Resolves to the renamed record, null where it was not renamed.
/** @param {Api.Workspace} record */
export function renameDialog(record, { version, path }) {
  const input = plainInput('mono', { value: record.name, maxlength: '63' });
  return formDialog({
    title: `Rename ${record.name}`,
    fields: [field('name', 'New name', input, { help: 'a-z, 0-9 and -. What runs in it runs on.' })],
    commandOf: () => [WORKSPACE_RENAME, record.name, input.value],
    action: WORKSPACE_RENAME.label,
    failed: 'It was not renamed.',
    send: () => call('POST', `${path}/rename`, { body: { name: input.value }, ifMatch: version }),
  });
}

// Resolves to whether it was upgraded.
/** @param {Api.Workspace} record */
export async function upgradeDialog(record, { version, path, refuse }) {
  let plan;
  try {
    plan = await call('GET', `${path}/upgrade`);
  } catch (error) {
    if (error.status !== 401) refuse(error);
    return false;
  }
  const isReplaced = plan.container === 'replaced';
  if (!record.allowed_actions.includes('upgrade')) return preview(record, plan);
  return formDialog({
    title: `Upgrade ${record.name} to ${nextOf(plan)}?`,
    fields: [planOf(plan), ends(plan)],
    action: `Upgrade to ${nextOf(plan)}`,
    keep: plan.before === plan.after ? 'Keep the present image' : `Stay at revision ${plan.before}`,
    danger: isReplaced,
    commandOf: () => [WORKSPACE_UPGRADE, record.name, isReplaced && '--yes'],
    failed: 'It was not upgraded.',
    send: () =>
      call('POST', `${path}/upgrade`, { body: { revision: plan.after, replace_container: isReplaced },
        ifMatch: version }),
  });
}

const nextOf = ({ before, after }) => before === after ? 'the newer image' : `revision ${after}`;

// Of one that runs: what would change, and what must be done before.
/** @param {Api.Workspace} record */
async function preview(record, plan) {
  openDialog(`What ${nextOf(plan)} changes in ${record.name}`,
    element('div.in', planOf(plan), ends(plan), element('p.soft', 'It is upgraded while it is stopped.'),
      command([WORKSPACE_UPGRADE, record.name, '--dry-run']),
      element('form.ends', { method: 'dialog' }, closeButton())));
  return false;
}

function planOf({ changes }) {
  if (changes.length === 0)
    return element('p', 'Nothing of this workspace changes but the number of its revision.');
  const row = ({ part, name, before, after }) =>
    element('tr.plain', element('td.soft', name ? `${part} ` : part, name && element('span.mono', name)),
      element('td.mono.small.ref', { 'data-l': 'Now' }, argumentOf(before)),
      element('td.mono.small.ref', { 'data-l': 'Then' }, argumentOf(after)));
  return element('table.table.dense.fold', { 'aria-label': 'What changes' }, tableHead(['What', 'Now', 'Then']),
    element('tbody', changes.map(row)));
}

function argumentOf(value) {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function ends({ container }) {
  if (container !== 'replaced')
    return element('p.soft',
      'Its container stays, with what was installed in it. What you have set yourself stays as far as the new '
        + 'limits allow it.');
  return notice('danger.inset', 'warning',
    element('p', element('b', 'It gets a new container.'),
      ' What was installed in the present one is lost; files in /work stay.'));
}
