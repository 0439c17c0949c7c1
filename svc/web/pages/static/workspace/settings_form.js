// The form of a workspace's settings: its fields, what they say, and the variables one by one.
import { element, find, findAll, icon } from '../frame/dom.js';
import { field, fieldOf, plainInput } from '../parts/form.js';
import { NO_LIMIT, SIZES } from './sizes.js';

function sizeField(name) {
  const { label, unit, isBounded } = SIZES[name];
  const control = plainInput('num', { inputmode: 'decimal' });
  return field(`resources.${name}`, label, control, { unit,
    help: isBounded ? "Empty: the template's" : `Empty: the template's; or ${NO_LIMIT}` });
}

// `buttons` stand below the fields.
export function fieldsOf(buttons) {
  const mode = element('select.input', ['exclusive', 'shared'].map(value => element('option', { value }, value)));
  const restart = element('input', { type: 'checkbox', id: 'f-restart_on_boot', name: 'restart_on_boot' });
  const lines = element('textarea.input.mono', { rows: '4', autocapitalize: 'off', spellcheck: 'false', wrap: 'off',
    placeholder: 'sh\n-c\npython3 /work/train.py --epochs 20' });
  return element('fieldset.stack-4', { 'data-editable': true },
    element('legend.vh', 'What changes while it is stopped'),
    element('div.section',
      element('div.form-grid',
        field('display_name', 'Title', plainInput('', { maxlength: '128', autocapitalize: null, spellcheck: null }), {
          help: 'For people; may be empty',
          wide: 'w2',
        }))),
    element('div.section', element('h2', 'Size'),
      element('div.form-grid', sizeField('gpu_count'),
        field('resources.gpu_mode', 'Mode', mode, { help: 'exclusive: no other workspace has them' }),
        sizeField('cpu_limit'), sizeField('memory_bytes'), sizeField('shm_bytes'), sizeField('pids_limit'))),
    element('div.section', element('h2', 'Variables'), element('div.stack-2', { 'data-rows': 'env' }),
      element('div.row',
        element('button.btn.sm', { 'data-add': true, click: () => addVariable().focus() }, icon('plus'),
          'Add a variable'))),
    element('div.section', element('h2', 'Network'),
      element('div.form-grid',
        field('network', 'Network of yours', plainInput('mono', { maxlength: '63', placeholder: 'none' }), {
          help: 'On it, your workspaces reach each other by name. Empty: none.',
          wide: 'w2',
        }))), element('div.section', element('h2', 'Command'), field('command', 'Its own command', lines, {
        help: "One argument a line, without a shell. Empty: the template's. The workspace is stopped when it ends.",
      })),
    element('div.section', element('h2', 'Reboot'),
      element('label.check', restart, element('span', 'Start it again after the host has rebooted'))),
    element('label.check', { 'data-replace': true, hidden: true },
      element('input', { type: 'checkbox', name: 'replace_container' }),
      element('span', 'Give it a new container: what was installed in it is lost, the files in /work stay')),
    element('div.row', ...buttons));
}

let rowNumber = 0;

// A row for a variable; returns its first field.
function addVariable(name = '', value = '') {
  const id = `variable-${rowNumber += 1}`;
  const control = (part, label, kind, text) =>
    element('div.field', element('label.vh', { for: `${id}-${part}` }, label),
      plainInput(`mono ${kind}`, { id: `${id}-${part}`, 'data-part': part, placeholder: part, value: text }));
  const remove = element('button.btn.icon.quiet', { 'aria-label': `Remove the variable ${name}`.trim(),
    click: () => removeRow(row) }, icon('close'));
  const row = element('div.env-row', control('name', 'Name of the variable', '', name),
    control('value', 'Value', '', value), remove);
  find('[data-rows=env]').append(row);
  return find('input', row);
}

function removeRow(row) {
  const next = row.nextElementSibling ?? row.previousElementSibling;
  row.remove();
  (next ? find('input', next) : find('[data-add]')).focus();
  find('[data-editable]').dispatchEvent(new Event('input', { bubbles: true }));
}

// ---- what the form says ----

export function readForm(form) {
  const control = name => fieldOf(form, name);
  const texts = { display_name: control('display_name').value, network: control('network').value,
    command: control('command').value, restart_on_boot: find('[name=restart_on_boot]', form).checked };
  for (const name of [...Object.keys(SIZES), 'gpu_mode'])
    texts[`resources.${name}`] = control(`resources.${name}`).value;
  const rows = findAll('.env-row', form).map(row => ({ row, name: find('[data-part=name]', row).value,
    value: find('[data-part=value]', row).value })
  ).filter(({ name, value }) => name || value);
  rows.forEach(({ row }, at) => {
    for (const input of findAll('input', row)) input.dataset.field = `env.${at}.${input.dataset.part}`;
  });
  texts.env = JSON.stringify(rows.map(({ name, value }) => ({ name, value })));
  return texts;
}

// Put what these fields of a record say into the form; all others stay as they are typed.
export function fillForm(form, texts, names) {
  for (const name of names) {
    if (name === 'env') {
      find('[data-rows=env]').replaceChildren();
      for (const variable of JSON.parse(texts.env)) addVariable(variable.name, variable.value);
    } else if (name === 'restart_on_boot') {
      find('[name=restart_on_boot]', form).checked = texts[name];
    } else {
      fieldOf(form, name).value = texts[name];
    }
  }
}
