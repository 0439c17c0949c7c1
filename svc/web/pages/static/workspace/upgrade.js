// The move to the newest revision of the template: what changes, before it does.
import { call } from '../frame/api.js';
import { element, icon } from '../frame/dom.js';
import { quoted } from '../frame/words.js';
import { formDialog } from './dialogs.js';

// Resolves to whether it was upgraded.
export async function upgradeDialog(record, { version, path, refuse }) {
  let plan;
  try {
    plan = await call('GET', `${path}/upgrade`);
  } catch (error) {
    if (error.status !== 401) refuse(error);
    return false;
  }
  const isReplaced = plan.container === 'replaced';
  return formDialog({
    title: `Upgrade ${record.name} to revision ${plan.after}?`,
    content: [planOf(plan), ends(plan)],
    deed: `Upgrade to revision ${plan.after}`, keep: `Stay at revision ${plan.before}`, danger: isReplaced,
    line: `svc ws upgrade ${quoted(record.name)}${isReplaced ? ' --yes' : ''}`, failed: 'It was not upgraded.',
    submit: () => call('POST', `${path}/upgrade`, { body: { revision: plan.after, replace_container: isReplaced }, ifMatch: version }),
  });
}

function planOf({ changes }) {
  if (changes.length === 0) return element('p', {}, 'Nothing of this workspace changes but the number of its revision.');
  const row = ({ part, name, before, after }) => element('tr', { role: 'row', class: 'plain' },
    element('td', { role: 'cell', class: 'soft' }, name ? `${part} ` : part, name && element('span', { class: 'mono' }, name)),
    element('td', { role: 'cell', class: 'mono small ref', 'data-l': 'Now' }, wordOf(before)),
    element('td', { role: 'cell', class: 'mono small ref', 'data-l': 'Then' }, wordOf(after)));
  const titles = ['What', 'Now', 'Then'].map(title => element('th', { role: 'columnheader', scope: 'col' }, title));
  return element('table', { class: 'table dense fold', role: 'table', 'aria-label': 'What changes' },
    element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, titles)), element('tbody', { role: 'rowgroup' }, changes.map(row)));
}

function wordOf(value) {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function ends({ container }) {
  if (container !== 'replaced') return element('p', { class: 'soft' }, 'Its container stays, with what was installed in it. What you have set yourself stays as far as the new limits allow it.');
  return element('div', { class: 'notice danger inset' }, icon('warning'), element('div', {},
    element('p', {}, element('b', {}, 'It gets a new container.'), ' What was installed in the present one is lost; files in /work stay.')));
}
