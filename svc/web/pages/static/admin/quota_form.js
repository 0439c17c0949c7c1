// The form of a quota: its limits, for whom it holds, and who is over it already.
import { all, call } from '../frame/api.js';
import { element } from '../frame/dom.js';
import { formDialog } from '../parts/form_dialog.js';
import { field, plainInput } from '../parts/form.js';
import { apiCommand } from './commands.js';
import { refused } from '../frame/notices.js';
import { bytesOf } from './quota_format.js';
import { amount, counted } from '../frame/format.js';

const GIB = 2 ** 30, NAMED = 8;
const FIELDS = [
  ['max_workspaces', 'Workspaces', '', 'workspaces', 'has'],
  ['max_running', 'Running', '', 'running', 'runs'],
  ['max_gpus', 'GPUs', '', 'gpus', 'holds'],
  ['max_cpu', 'CPUs', '', null, ''],
  ['max_memory_bytes', 'Memory', 'GiB', null, ''],
  ['max_image_bytes', 'Images', 'GiB', 'image_bytes', 'has'],
];
const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export const holdersOf = (name, accounts) => accounts.filter(account => (account.quota ?? 'default') === name);
/** @param {Api.QuotaPolicy} policy */
const limitsOf = policy => Object.fromEntries(FIELDS.map(([key]) => [key, policy[key] ?? null]));
const isSame = (a, b) => JSON.stringify(limitsOf(a)) === JSON.stringify(limitsOf(b));

// Edit a policy, or make one (null). Resolves to the policy as the API has it then, or to null.
/** @param {Api.QuotaPolicy} policy */
export function quotaForm(policy, policies, accounts) {
  let before = policy;
  const name = plainInput('mono', { maxlength: '63', placeholder: 'lab' });
  const controls = Object.fromEntries(
    FIELDS.map((
      [key, , unit],
    ) => [key,
      element('input.input', { inputmode: 'decimal', autocomplete: 'off', placeholder: 'no limit',
        value: textOf(policy?.[key] ?? null, unit) })]
    )
  );
  const over = element('p.small.is-warn', { role: 'status' });
  const grid = element('div.form-grid',
    FIELDS.map(([key, label, unit]) => field(key, label, controls[key], { unit, wide: 'w2' })));
  const nameOf = () => policy?.name ?? name.value;
  const limits = () =>
    Object.fromEntries(FIELDS.map(([key, , unit]) => [key, valueOf(controls[key].value, unit, policy?.[key] ?? null)]));
  const commandOf = () => {
    over.textContent = policy ? overOf(limits(), holdersOf(policy.name, accounts)) : '';
    return apiCommand('PUT', `/api/admin/quotas/${SLUG.test(nameOf()) ? nameOf() : 'NAME'}`, limits());
  };
  const send = async () => {
    const wrong = errorsOf(policy, nameOf(), policies, limits());
    if (wrong.length) throw Object.assign(new Error('The form has errors.'), { fields: wrong });
    if (before) {
      const now = (await all('/api/admin/quotas')).find(one => one.name === before.name);
      if (now && !isSame(now, before)) {
        before = now;
        throw changed(now);
      }
    }
    return call('PUT', `/api/admin/quotas/${encodeURIComponent(nameOf())}`, { body: limits() });
  };
  const head = policy
    ? element('p', { 'data-holds': true }, ...holdsFor(policy, accounts))
    : field('name', 'Name', name, { help: 'a-z, 0-9 and - inside.' });
  return formDialog({
    title: policy ? `Edit the quota ${policy.name}` : 'New quota',
    action: policy ? 'Save' : 'Make the quota',
    commandOf,
    send,
    fields: [head, grid,
      element('p.help',
        'Empty is no limit. Running, GPUs, CPUs and memory count over all running workspaces of an account. '
          + 'What runs goes on when its quota shrinks.'), over],
  });
}

// For whom it holds, by name.
function holdsFor({ name }, accounts) {
  const holders = holdersOf(name, accounts);
  if (holders.length === 0) return ['No account has it.'];
  const rest = holders.length - NAMED;
  const names = holders.slice(0, NAMED).flatMap((account, at) => [at > 0 && ', ', element('span.mono', account.name)]);
  return ['Holds for ', ...names, rest > 0 && ` and ${counted(rest, 'other')}`,
    name === 'default' ? ', and for every new account.' : '.'];
}

function overOf(limits, holders) {
  const said = [];
  for (const account of holders) {
    const parts = FIELDS.filter(([key, , , use]) =>
      use && typeof limits[key] === 'number' && account[use] > limits[key]
    )
      .map(([, label, unit, use, verb]) =>
        `${verb} ${unit ? bytesOf(account[use]) : account[use]}${
          unit
            ? ' of images'
            : use === 'running'
            ? ''
            : ` ${
              label === 'GPUs'
                ? counted(account[use], 'GPU').split(' ')[1]
                : counted(account[use], 'workspace').split(' ')[1]
            }`
        }`
      );
    if (parts.length) said.push(`${account.name} ${parts.join(', ')}`);
  }
  if (said.length === 0) return '';
  const rest = said.length - NAMED;
  return `Over it now: ${said.slice(0, NAMED).join('; ')}${
    rest > 0 ? ` and ${counted(rest, 'other')}` : ''
  }. What is there stays; more is refused.`;
}

function textOf(value, unit) {
  return value === null ? '' : unit ? String(Math.round(value / GIB * 1000) / 1000) : String(value);
}

// What is typed, in the API's units; text that was not changed is the value that was there, to the byte.
function valueOf(text, unit, before) {
  if (text.trim() === textOf(before, unit)) return before;
  const number = text.trim() === '' ? null : Number(text.trim().replace(',', '.'));
  return number === null || Number.isNaN(number)
    ? (number === null ? null : text.trim())
    : unit
    ? Math.round(number * GIB)
    : number;
}

/** @param {Api.QuotaPolicy} policy */
function errorsOf(policy, name, policies, limits) {
  const wrong = [];
  if (!policy && !SLUG.test(name))
    wrong.push({ field: 'name', message: 'A name has a-z, 0-9 and - (inside), at most 63.' });
  else if (!policy && policies.some(one => one.name === name))
    wrong.push({ field: 'name', message: `There is a quota ${name}; edit that one.` });
  for (const [key, , unit] of FIELDS) {
    const value = limits[key];
    const isWhole = unit !== '' || key === 'max_cpu' || Number.isInteger(value);
    if (value !== null && (typeof value !== 'number' || value < 0 || !isWhole))
      wrong.push({ field: key,
        message: isWhole ? 'A number, or empty for no limit.' : 'A whole number, or empty for no limit.' });
  }
  return wrong;
}

function changed(now) {
  const text = FIELDS.filter(([key]) => now[key] !== null).map(([key, label, unit]) =>
    `${label} ${unit ? bytesOf(now[key]) : amount(now[key])}`
  ).join(', ');
  return refused({ code: 'changed_meanwhile',
    message: `${now.name} was changed since this form was opened: ${text || 'no limits'}. Save again to replace that`,
    hint: '' });
}
