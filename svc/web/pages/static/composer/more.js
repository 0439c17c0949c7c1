// The folded part of the form: variables and ports of this workspace, and what its template has of them.
import { element, find, icon } from '../frame/dom.js';
import { textOfCommand } from '../parts/own_command.js';
import { field, plainInput } from '../parts/form.js';
import { portFields, rowWith } from '../parts/port_rows.js';

// The values of another workspace: its title, its command, and its variables and ports that the template does not have.
// Returns its resources as a request: no limit is said where the template has one of its own.
export function fillLike(form, source, { defaults, limits, ports, network = null }) {
  find('[data-field=display_name]', form).value = source.display_name;
  find('[data-field=restart_on_boot]', form).checked = source.restart_on_boot;
  const isDefault = ({ name, value }) => (defaults.env ?? []).some(one => one.name === name && one.value === value);
  for (const variable of source.env) if (!isDefault(variable)) addRow(form, 'env', variable);
  for (const port of source.ports)
    if (!ports.some(other => other.name === port.name))
      addRow(form, 'ports', port.container_port === port.host_port ? { ...port, container_port: '' } : port);
  if (source.network !== network) networkField(form).value = source.network ?? NO_NETWORK;
  if (source.command) {
    networkField(form); // which comes before it
    commandField(form).value = textOfCommand(source.command);
  }
  const asked = { ...source.resources };
  for (const key of ['cpu_limit', 'memory_bytes', 'shm_bytes', 'pids_limit']) {
    if (asked[key] === null && (defaults[key] ?? limits[key] ?? null) !== null) asked[key] = 'unlimited';
  }
  return asked;
}

// Put the headings and buttons beside the rows, once.
export function openMore(place, change) {
  if (find('h3', place)) return;
  for (
    const [kind, title, label, blank] of [['env', 'Variables', 'Add a variable', { name: '', value: '' }], ['ports',
      'Ports', 'Add a port', {}]]
  ) {
    const rows = find(`[data-rows="${kind}"]`, place);
    const add = () => {
      addRow(place, kind, blank);
      find(':scope > .form-row:last-of-type input', rows).focus();
      change();
    };
    rows.before(element('h3', title));
    rows.after(
      element('div', element('button.btn.sm', { key: `add-${kind}`, click: add }, icon('plus'), label))
    );
  }
  networkField(place);
  commandField(place);
}

const addRow = (place, kind, values) =>
  find(`[data-rows="${kind}"]`, place).append(kind === 'env' ? variableRow(values) : portRow(values));

const NO_NETWORK = 'none';

// The fields of the network and of the command, made when they are asked for first.
const networkField = place => ownField(place, 'network', 'Network', () => plainInput('mono', { maxlength: 63 }));
const commandField = place =>
  ownField(place, 'command', 'Command', () => element('textarea.input.mono', { rows: 2, spellcheck: 'false' }));

function ownField(place, name, title, make) {
  const created = find(`[data-field=${name}]`, place);
  if (created) return created;
  const control = make();
  find('[data-template-facts]', place).before(field(name, title, control, { help: '', optional: true }));
  return control;
}

const part = (label, control, wide) => element('label', { class: `field ${wide}` }, element('span.vh', label), control);

// A row goes; the focus to the button that adds one.
function remove(row) {
  const rows = row.parentElement, form = row.closest('form');
  row.remove();
  find(`[data-key="add-${rows.dataset.rows}"]`, form).focus();
  form.dispatchEvent(new Event('input', { bubbles: true }));
}

function variableRow({ name, value }) {
  const text = element('textarea.input.mono', { rows: 1, spellcheck: 'false', 'data-part': 'value' });
  text.value = value;
  return rowWith('Remove this variable', remove,
    part('Name of the variable', plainInput('mono', { placeholder: 'NAME', value: name, 'data-part': 'name' }), 'w2'),
    part('Value', text, 'w2'));
}

const portRow = port => rowWith('Remove this port', remove, ...portFields(port));

// What the template gives besides.
/** @param {Api.Template} template */
export function showFacts(place, template) {
  /** @type {[string, string[]][]} */
  const all = [
    ['Variables', template.env.map(({ name, secret }) => secret ? `${name} (secret)` : name).concat(
      (template.defaults.env ?? []).map(({ name }) => name)
    )],
    ['Ports',
      template.ports.map(port =>
        `${port.name}${port.container_port ? ` ${port.container_port}` : ''}${
          (port.kind ?? 'http') === 'http' ? '' : ` ${port.kind}`
        }${port.access === 'host' ? ' for every user of the host' : ''}`
      )],
    ['Mounts', ['work at /work',
      ...template.mounts.map(({ root, path, read_only: isReadOnly }) =>
        `${root} at ${path}${isReadOnly ? ', read-only' : ''}`
      )]],
    ['Apps', template.launchers.map(({ name, autostart }) => autostart ? `${name}, at each start` : name)],
    ['When idle', template.idle.action && template.idle.action !== 'none'
      ? [`${template.idle.action === 'stop' ? 'stopped' : 'said'} after ${template.idle.after_minutes} min`]
      : ['nothing']],
  ];
  const lines = all.filter(([, values]) => values.length);
  networkField(place);
  commandField(place);
  find('#f-command-h', place).textContent =
    "One argument a line, without a shell. Empty: the template's. The workspace is stopped when it ends.";
  find('#f-network-h', place).textContent = template.network
    ? `Empty: ${template.network}, as the template's; ${NO_NETWORK} for none.`
    : 'On one of yours, your workspaces reach each other by name. Empty: none.';
  find('[data-template-facts]', place).replaceChildren(element('h3', 'From the template'),
    element('dl.facts', lines.flatMap((
      [title, values],
    ) => [element('dt', title), element('dd.mono.ref', values.join(', '))])));
}
