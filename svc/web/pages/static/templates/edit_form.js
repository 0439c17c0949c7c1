// The fields of a template that its Dockerfile has not: changed as one edit, over the version that was read.
import { call } from '../frame/api.js';
import { element, find, findAll, icon, notice, setAttribute } from '../frame/dom.js';
import { setCommand } from '../frame/foot.js';
import { commandsOf, apiPathOf } from './about.js';
import { field, pointAtErrors, plainInput } from '../parts/form.js';
import { noticePlace, sendForm } from '../parts/send_form.js';
import { portFields, portRequest, portTexts, rowWith } from '../parts/port_rows.js';

const SIZE = 2 ** 30; // sizes are in GiB here, in bytes there
/** @type {[keyof Api.Limits, string, number][]} */
const NUMBERS = [['cpu_limit', 'CPUs', 1], ['memory_bytes', 'Memory, GiB', SIZE], ['gpu_count', 'GPUs', 1], [
  'shm_bytes',
  'Shared memory, GiB',
  SIZE,
], ['pids_limit', 'Processes', 1]];
const REST = ['command', 'run_as', 'gpu', 'launchers', 'mounts'];
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// The form of this template; `done(record)` after it was saved, `closed()` without. `read()` gives {template, tag}
// anew.
export function editForm({ template, tag, reference }, { done, closed, read }) {
  const state = { tag, conflict: false };
  const parts = { plain: plainFields(template), sizes: ['defaults', 'limits'].map(part => numberFields(template, part)),
    env: envFields(template), ports: portsFields(template), rest: restField(template) };
  const other = element('div', { hidden: true, 'data-conflict': true });
  const go = element('button.btn.primary', { type: 'submit', key: 'save-fields' }, 'Save');
  const commands = commandsOf(reference);

  function patchOf() {
    const next = { ...parts.plain.value(), env: parts.env.value(), ports: parts.ports.value(), ...parts.rest.value() };
    for (const part of parts.sizes) Object.assign(next, part.value());
    return Object.fromEntries(Object.entries(next).filter(([key, value]) => !same(value, baseOf(template, key))));
  }

  function follow() {
    let cmd = /** @type {any} */ (commands.get);
    try {
      const patch = patchOf();
      if (Object.keys(patch).length) cmd = commands.edit(patch, template.revision);
      parts.rest.control.removeAttribute('aria-invalid');
    } catch { /* the JSON is not complete yet */ }
    setCommand(cmd);
    setAttribute(go, 'data-cmd', cmd);
  }

  async function send() {
    let patch;
    try {
      patch = patchOf();
    } catch (error) {
      pointAtErrors(form, [{ field: 'rest', message: error.message }]);
      return;
    }
    if (!Object.keys(patch).length) {
      closed();
      return;
    }
    await sendForm(form, go, `${template.name} was not changed.`, async () => {
      try {
        done(
          await call('PATCH', apiPathOf(template), { body: patch, ifMatch: state.tag })
        );
      } catch (error) {
        if (error.status !== 412) throw error;
        await showConflict(patch);
      }
    });
  }

  // Somebody else has saved: both values of what both have changed. Saving again is over theirs, for these fields only.
  async function showConflict(patch) {
    const now = await read();
    state.tag = now.tag;
    const both = Object.keys(patch).filter(key => !same(baseOf(now.template, key), baseOf(template, key)));
    const value = data =>
      element('pre.code.conflict', { tabindex: '0' }, typeof data === 'string' ? data : JSON.stringify(data, null, 1));
    other.hidden = false;
    other.replaceChildren(
      notice('warn', 'warning', { role: 'alert', tabindex: '-1' },
        element('p', element('b', `Revision ${now.template.revision} was saved elsewhere meanwhile. `), both.length
          ? 'Both have changed these fields; nothing of yours is saved yet. Save again to have yours.'
          : 'It has other fields than yours: save again to have both.'),
        ...both.map(key =>
          element('div.cols.half',
            element('div.stack', element('b.small', `${key}, saved elsewhere`), value(baseOf(now.template, key))),
            element('div.stack', element('b.small', `${key}, yours`), value(patch[key])))
        ))
    );
    find('.notice', other).focus();
  }

  const form = element('form.panel', { 'aria-labelledby': 'form-h', 'data-form': true, novalidate: true,
    on: { submit: event => {
      event.preventDefault();
      send();
    }, input: follow, change: follow } }, element('header', element('h2', { id: 'form-h' }, `Edit ${template.name}`)),
    element('div.body.stack-4', other, parts.plain.node, ...parts.sizes.map(part => part.node), parts.env.node,
      parts.ports.node, parts.rest.node, noticePlace()),
    element('footer', element('button.btn', { key: 'cancel-edit', click: () => closed() }, 'Cancel'), go,
      element('span.muted.small',
        `Saves revision ${
          template.revision + 1
        }. Existing workspaces stay on theirs. A new image must be enabled again.`)));
  follow();
  return { node: form, isDirty: () => {
    try {
      return Object.keys(patchOf()).length > 0;
    } catch {
      return true;
    }
  }, first: () => find('input', form).focus() };
}

// What the API has now, in the shape of a change.
/** @param {Api.Template} template */
function baseOf(template, key) {
  if (key === 'source') return { image_ref: template.source.image_ref };
  if (key === 'env')
    return template.env.map(
      one => (one.secret ? { name: one.name, secret: true } : { name: one.name, value: one.value, secret: false })
    );
  if (key === 'ports') return template.ports.map(wholePort);
  if (key === 'network') return template.network ?? null;
  return template[key];
}

const wholePort = ({ name, container_port: number = null, access = 'owner', kind = 'http', user = null }) => ({ name,
  container_port: number, access, kind, user });

/** @param {Api.Template} template */
function plainFields(template) {
  const isImage = template.source.type === 'registry';
  const name = plainInput('mono', { value: template.name, maxlength: '63' });
  const text = element('input.input', { value: template.description, autocomplete: 'off', maxlength: '1024' });
  const image = plainInput('mono', { value: template.source.image_ref });
  const action = element('select.input',
    [['none', 'Nothing'], ['notify', 'Only note it in the activity'], ['stop', 'Stop the workspace']].map((
      [value, title],
    ) => element('option', { value, selected: value === template.idle.action }, title)));
  const minutes = element('input.input', { type: 'number', min: '10', max: '10080',
    value: template.idle.after_minutes ?? '' });
  const network = plainInput('mono', { value: template.network ?? '', maxlength: '63' });
  const idle = () => (action.value === 'none'
    ? { ...template.idle, action: 'none',
      after_minutes: template.idle.action === 'none' ? template.idle.after_minutes : null }
    : { action: action.value, after_minutes: minutes.value === '' ? null : Number(minutes.value) });
  return {
    value: () => ({ name: name.value.trim(), description: text.value, network: network.value.trim() || null,
      idle: idle(), ...isImage && { source: { image_ref: image.value.trim() } } }),
    node: element('div.form-grid', field('name', 'Name', name, { wide: 'w2' }),
      field('description', 'What it is for', text, { wide: 'w2', optional: true }),
      isImage && field('source.image_ref', 'Image', image, { wide: 'w4' }),
      field('idle.action', 'When idle', action, { wide: 'w2' }),
      field('idle.after_minutes', 'After minutes', minutes, { wide: 'w2', help: '10 to 10080' }),
      field('network', 'Network', network, { wide: 'w2', optional: true,
        help: 'On which the workspaces of one person reach each other by name' })),
  };
}

/** @param {Api.Template} template */
function numberFields(template, part) {
  const base = template[part], isDefault = part === 'defaults';
  const inputs = NUMBERS.map(([key, title, unit]) => ({ key, unit, title,
    input: element('input.input.num', { type: 'number', min: '0', step: 'any',
      value: base[key] === undefined || base[key] === null ? '' : base[key] / unit }) })
  );
  const mode = isDefault
    ? element('select.input',
      [['', 'as the workspace asks'], ['exclusive', 'exclusive'], ['shared', 'shared']].map(([value, title]) =>
        element('option', { value, selected: value === (base.gpu_mode ?? '') }, title)
      ))
    : null;
  const value = () => {
    const next = { ...base };
    for (const { key, unit, input } of inputs) {
      if (input.value === '') { if (base[key] !== null) delete next[key]; }
      else next[key] = unit === 1 ? Number(input.value) : Math.round(Number(input.value) * unit);
    }
    if (mode) {
      if (mode.value) next.gpu_mode = mode.value;
      else delete next.gpu_mode;
    }
    return { [part]: next };
  };
  return { value,
    node: element('div.section', { role: 'group', 'aria-labelledby': `${part}-h` },
      element('h3', { id: `${part}-h` },
        isDefault ? 'What a workspace gets by default' : 'The most that it may ask for'),
      element('div.form-grid', inputs.map(({ key, title, input }) => field(`${part}.${key}`, title, input)),
        mode && field(`${part}.gpu_mode`, 'GPUs are', mode))) };
}

// A list of rows, {value, node}: `rowOf(item, remove)` makes one, `valueOf(list)` reads them.
function listField(field, { title, label, items, rowOf, valueOf, help }) {
  const list = element('div.stack-2');
  const remove = row => {
    row.remove();
    add.focus();
    list.dispatchEvent(new Event('input', { bubbles: true }));
  };
  const add = element('button.btn.sm', { key: `add-${label.toLowerCase()}`, click: () => {
    const row = rowOf({ name: '' }, remove);
    list.append(row);
    find('input', row).focus();
  } }, icon('plus'), label);
  list.append(...items.map(item => rowOf(item, remove)));
  return { value: () => valueOf(list),
    node: element('div.section.field', { role: 'group', 'aria-labelledby': `${field}-h`, 'data-field': field,
      id: `${field}-fields`, tabindex: '-1' }, element('h3', { id: `${field}-h` }, title), list,
      element('div.row', add, element('span.help', help))) };
}

/** @param {Api.Template} template */
const envFields = template =>
  listField('env', {
    title: 'Variables',
    label: 'Variable',
    items: template.env,
    rowOf: ({ name, value = '', secret = false, is_set: isSet = false }, remove) => {
      const row = element('div.variable', { 'data-variable': true },
        plainInput('mono', { 'aria-label': 'Name of the variable', value: name }),
        plainInput('mono', { 'aria-label': 'Its value', value: value ?? '',
          placeholder: secret && isSet ? 'kept; type another to change it' : '' }),
        element('label.check', element('input', { type: 'checkbox', checked: secret }), 'secret'),
        element('button.btn.icon.sm.quiet', { 'aria-label': `Remove ${name || 'the variable'}`,
          click: () => remove(row) }, icon('close')));
      return row;
    },
    valueOf: list =>
      findAll('[data-variable]', list).map(row => {
        const [name, text, secret] = findAll('input', row);
        return secret.checked
          ? { name: name.value.trim(), ...text.value !== '' && { value: text.value }, secret: true }
          : { name: name.value.trim(), value: text.value, secret: false };
      }).filter(one => one.name),
    help: 'The value of a secret one is never shown again; the programs of a workspace see it.',
  });

/** @param {Api.Template} template */
const portsFields = template =>
  listField('ports', {
    title: 'Ports',
    label: 'Port',
    items: template.ports,
    rowOf: (port, remove) =>
      rowWith(port.name ? `Remove the port ${port.name}` : 'Remove this port', remove, ...portFields(port)),
    valueOf: list =>
      findAll('.form-row', list).map(portTexts).filter(texts => texts.name || texts.container_port).map(portRequest),
    help: 'Without a number the port inside is the one on the host, which a launcher finds in SVC_PORT.',
  });

/** @param {Api.Template} template */
function restField(template) {
  const control = element('textarea.input.mono', { rows: '12', spellcheck: 'false', wrap: 'off' });
  control.value = JSON.stringify(Object.fromEntries(REST.map(key => [key, template[key]])), null, 2);
  const value = () => {
    const found = JSON.parse(control.value);
    const unknown = Object.keys(found).filter(key => !REST.includes(key));
    if (unknown.length) throw new SyntaxError(`not one of ${REST.join(', ')}: ${unknown.join(', ')}`);
    return found;
  };
  return { value, control, node: field('rest', 'Command, user, GPU needs, apps and mounts, as JSON', control, {
    help: 'As in svc template create --file.',
  }) };
}
