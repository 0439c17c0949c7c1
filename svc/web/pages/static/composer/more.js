// The folded part of the form: variables and ports of this workspace, and what its template has of them.
import { element, find, icon } from '../frame/dom.js';

// The values of another workspace: its longer name, and its variables and ports that the template does not have.
// Returns its resources as a request: no limit is said where the template has one of its own.
export function fillLike(form, source, { defaults, limits, ports }) {
  find('[data-field=display_name]', form).value = source.display_name;
  find('[data-field=restart_on_boot]', form).checked = source.restart_on_boot;
  const isDefault = ({ name, value }) => (defaults.env ?? []).some(one => one.name === name && one.value === value);
  for (const variable of source.env) if (!isDefault(variable)) addRow(form, 'env', variable);
  for (const port of source.ports) if (!ports.some(other => other.name === port.name)) addRow(form, 'ports', port);
  const asked = { ...source.resources };
  for (const key of ['cpu_limit', 'memory_bytes', 'shm_bytes', 'pids_limit']) {
    if (asked[key] === null && (defaults[key] ?? limits[key] ?? null) !== null) asked[key] = 'unlimited';
  }
  return asked;
}

// Put the headings and buttons beside the rows, once.
export function openMore(place, change) {
  if (find('h3', place)) return;
  for (const [kind, title, label, blank] of [['env', 'Variables', 'Add a variable', { name: '', value: '' }], ['ports', 'Ports', 'Add a port', { name: '', container_port: '', access: 'owner' }]]) {
    const rows = find(`[data-rows="${kind}"]`, place);
    const add = () => { addRow(place, kind, blank); find(':scope > .form-row:last-of-type input', rows).focus(); change(); };
    rows.before(element('h3', {}, title));
    rows.after(element('div', {}, element('button', { class: 'btn sm', type: 'button', 'data-key': `add-${kind}`, on: { click: add } }, icon('plus'), label)));
  }
}

const addRow = (place, kind, values) => find(`[data-rows="${kind}"]`, place).append(kind === 'env' ? variableRow(values) : portRow(values));

const input = attributes => element('input', { autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', ...attributes });
const part = (label, control, wide) => element('label', { class: `field ${wide}` }, element('span', { class: 'vh' }, label), control);

function rowWith(label, ...parts) {
  const node = element('div', { class: 'form-row' }, element('div', { class: 'form-grid' }, ...parts),
    element('button', { class: 'btn icon quiet', type: 'button', 'aria-label': label, on: { click: () => remove(node) } }, icon('close')),
    element('p', { class: 'field-error', hidden: true }, icon('warning'), element('span', {})));
  return node;
}

// A row goes; the focus to the button that adds one.
function remove(row) {
  const rows = row.parentElement, form = row.closest('form');
  row.remove();
  find(`[data-key="add-${rows.dataset.rows}"]`, form).focus();
  form.dispatchEvent(new Event('input', { bubbles: true }));
}

function variableRow({ name, value }) {
  const text = element('textarea', { class: 'input mono', rows: 1, spellcheck: 'false', 'data-part': 'value' });
  text.value = value;
  return rowWith('Remove this variable', part('Name of the variable', input({ class: 'input mono', placeholder: 'NAME', value: name, 'data-part': 'name' }), 'w2'), part('Value', text, 'w2'));
}

function portRow({ name, container_port: number, access }) {
  const select = element('select', { class: 'input', 'data-part': 'access' }, element('option', { value: 'owner' }, 'for me alone'), element('option', { value: 'host' }, 'for every user of the host'));
  select.value = access;
  return rowWith('Remove this port', part('Name of the port', input({ class: 'input mono', placeholder: 'name', value: name, maxlength: 63, 'data-part': 'name' }), ''),
    part('Port in the container', input({ class: 'input num', placeholder: '8000', inputmode: 'numeric', value: String(number), 'data-part': 'container_port' }), ''), part('Who may connect', select, 'w2'));
}

// What the template gives besides.
export function showFacts(place, template) {
  const lines = [
    ['Variables', template.env.map(({ name, secret }) => secret ? `${name} (secret)` : name).concat((template.defaults.env ?? []).map(({ name }) => name))],
    ['Ports', template.ports.map(port => `${port.name} ${port.container_port ?? ''}${port.access === 'host' ? ' for every user of the host' : ''}`)],
    ['Mounts', ['work at /work', ...template.mounts.map(({ root, path, read_only: isReadOnly }) => `${root} at ${path}${isReadOnly ? ', read-only' : ''}`)]],
    ['Apps', template.launchers.map(({ name, autostart }) => autostart ? `${name}, at each start` : name)],
    ['When idle', template.idle.action && template.idle.action !== 'none' ? [`${template.idle.action === 'stop' ? 'stopped' : 'said'} after ${template.idle.after_minutes} min`] : ['nothing']],
  ].filter(([, values]) => values.length);
  find('[data-template-facts]', place).replaceChildren(element('h3', {}, 'From the template'),
    element('dl', { class: 'facts' }, lines.flatMap(([title, values]) => [element('dt', {}, title), element('dd', { class: 'mono ref' }, values.join(', '))])));
}
