// A port in a form: what is behind it, the login of the kinds that have one, and its command.
import { element, find, icon } from '../frame/dom.js';
import { plainInput } from './form.js';

const PORT_KINDS = ['http', 'https', 'tcp', 'ssh', 'postgres'];
const PORT_LOGINS = { ssh: 'root', postgres: 'postgres' };

const portPart = (label, control, wide = '') =>
  element('label', { class: `field ${wide}`.trim() }, element('span.vh', label), control);
const portSelect = (name, value, text) => {
  const node = element('select.input', { 'data-part': name },
    Object.entries(text).map(([key, label]) => element('option', { value: key }, label)));
  node.value = value;
  return node;
};

// The fields of a port: name, port inside, kind, who may connect, login.
export function portFields(
  { name = '', container_port: number = '', access = 'owner', kind = 'http', user = '' } = {},
) {
  const login = plainInput('mono', { value: user ?? '', maxlength: 32, 'data-part': 'user' });
  const kinds = portSelect('kind', kind, Object.fromEntries(PORT_KINDS.map(one => [one, one])));
  const loginPart = portPart('Login inside', login);
  const follow = () => {
    loginPart.hidden = !PORT_LOGINS[kinds.value];
    login.placeholder = `login, else ${PORT_LOGINS[kinds.value] ?? 'none'}`;
    if (loginPart.hidden) login.value = '';
  };
  for (const event of ['input', 'change']) kinds.addEventListener(event, follow); // before the form reads it
  follow();
  return [
    portPart('Name of the port',
      plainInput('mono', { placeholder: 'name', value: name, maxlength: 63, 'data-part': 'name' })),
    portPart('Port inside; empty for the same number as on the host',
      plainInput('num', { placeholder: 'port inside', inputmode: 'numeric', value: String(number ?? ''),
        'data-part': 'container_port' })),
    portPart('What is behind it', kinds),
    portPart('Who may connect',
      portSelect('access', access, { owner: 'for me alone', host: 'for every user of the host' })),
    loginPart,
  ];
}

// The texts of such fields, by their names.
export function portTexts(place) {
  const text = name => find(`[data-part=${name}]`, place).value.trim();
  return { name: text('name'), container_port: text('container_port'), kind: text('kind'), access: text('access'),
    user: text('user') };
}

/**
 * Texts as the API has a port. What is no number goes as it is: the API says so.
 * @param {ReturnType<typeof portTexts>} texts
 */
export function portRequest({ name, container_port: number, kind, access, user }) {
  return { name, container_port: number === '' ? null : /^\d+$/.test(number) ? Number(number) : number, access, kind,
    user: user || null };
}

// A row with a button that takes it away.
export function rowWith(label, remove, ...parts) {
  const node = element('div.form-row', element('div.form-grid', ...parts),
    element('button.btn.icon.quiet', { 'aria-label': label, click: () => remove(node) }, icon('close')));
  return node;
}
