// Settings: who one is, what this browser does, the quota, the service password.
import { call } from '../frame/api.js';
import { chooseSingleKeys, chooseTheme, hasSingleKeys, onChoice, theme } from '../frame/choices.js';
import { element, find, findAll, panel, setAttribute } from '../frame/dom.js';
import { showPerson } from '../frame/frame.js';
import { setCommand, toast } from '../frame/foot.js';
import { amount, counted, gibibytes, time } from '../frame/format.js';
import { gauge } from '../parts/headroom.js';
import { announce } from '../frame/notices.js';
import { refreshSoon, perform } from '../screen/page.js';
import { put } from '../parts/still.js';
import { field, pointAtErrors, showErrors } from '../parts/form.js';
import { day, setSession, startSettings } from './page.js';
import { passwordPanel, showWhatEnds } from './password.js';

const READER = 'svc.terminal.reader'; // read by the terminal
const known = { me: null, usage: null, tokens: 0, sessions: 0 };

async function read(options) {
  const [me, usage, tokens, sessions] = await Promise.all(
    ['/api/users/me', '/api/usage/me', '/api/tokens?limit=1&status=active', '/api/auth/sessions?limit=1'].map(path =>
      call('GET', path, options)
    )
  );
  Object.assign(known, { me, usage, tokens: tokens.total, sessions: sessions.total });
}

// Forms are built once: what is typed into them stays when something else is read anew.
/** @param {Api.SessionAnswer} session */
function show(session) {
  if (!find('#you-h')) build(session);
  put(find('[data-facts]'), known.me, () => facts(known.me));
  put(find('[data-quota]'), known.usage, () => quota(known.usage));
  put(find('[data-session]'), [session.session, known.sessions], () => sessionFacts([session.session, known.sessions]));
  showWhatEnds(known);
  const name = find('#dn');
  if (!name.dataset.typed) name.value = known.me.display_name;
}

function build({ user }) {
  find('#screen').replaceChildren(
    element('div.cols.half', element('div.stack-4', youPanel(), quotaPanel()),
      element('div.stack-4', browserPanel(), passwordPanel({ user, renewed })))
  );
}

// ---- you ----

function facts({ name, uid, superuser, linux_account: linux }) {
  return [
    element('dt', 'Account'),
    element('dd.mono', `${name}, uid ${uid}`),
    element('dt', 'Home'),
    element('dd.mono', linux.home),
    superuser && element('dt', 'Role'),
    superuser && element('dd', 'administrator'),
  ].filter(Boolean);
}

const nameCommand =
  text => ['api', 'PATCH', `/api/users/${known.me.name}`, '--body', JSON.stringify({ display_name: text })];

function youPanel() {
  const name = element('input.input', { id: 'dn', name: 'display_name', autocomplete: 'name', maxlength: '128' });
  const save = element('button.btn.primary', { type: 'submit', 'data-action': true, key: 'save',
    cmd: nameCommand(known.me.display_name) }, 'Save');
  name.addEventListener('input', () => {
    name.dataset.typed = 'true';
    setAttribute(save, 'data-cmd', nameCommand(name.value));
    setCommand(name.value === known.me.display_name ? ['whoami'] : nameCommand(name.value));
  });
  const form = element('form.stack-4', { on: { submit: event => {
    event.preventDefault();
    saveName(form, name, save);
  } } }, field('display_name', 'Your name', name, { help: "Shown beside your account's name." }),
    element('div.row', save));
  return panel('you-h', 'You', null, element('div.body.stack-4', element('dl.facts', { 'data-facts': true }), form));
}

async function saveName(form, name, save) {
  const request = async () => {
    known.me.display_name =
      (await call('PATCH', `/api/users/${encodeURIComponent(known.me.name)}`, { body: { display_name: name.value } }))
        .display_name;
  };
  showErrors(form, []);
  if (!await perform(save, { what: 'Your name was not saved.', refuse: error => pointAtErrors(form, error.fields) },
    request)) return;
  delete name.dataset.typed;
  name.value = known.me.display_name;
  showPerson(known.me.display_name);
  setCommand(['whoami']);
  toast('Saved');
  refreshSoon();
}

// ---- the quota ----

function quotaPanel() {
  return panel('quota-h', 'Quota', null, element('div.body.gauges', { 'data-quota': true }));
}

function quota({ quota: most, ...used }) {
  const rows = [
    ['Workspaces', used.workspaces, most.max_workspaces, amount],
    ['Running', used.running, most.max_running, amount],
    ['GPUs', used.gpus, most.max_gpus, amount],
    ['CPUs', used.cpu, most.max_cpu, amount],
    ['Memory', used.memory_bytes, most.max_memory_bytes, gibibytes, ' GiB'],
    ['Images', used.image_bytes, most.max_image_bytes, gibibytes, ' GiB'],
  ];
  return [
    element('p.muted.small', 'Your policy is ', element('span.mono', most.name), '; an administrator changes it. ',
      element('a', { href: '/workspaces', cmd: ['ws capacity'] }, 'Who has the GPUs')),
    ...rows.map(([label, value, limit, form, unit]) => gauge(label, value, limit, form, unit)),
  ];
}

// ---- this browser ----

const THEMES = [['system', 'As the system'], ['light', 'Light'], ['dark', 'Dark']];

function browserPanel() {
  const radio = ([value, title]) =>
    element('label', element('input', { type: 'radio', name: 'theme', value, on: { change: () =>
      chooseTheme(value) } }), title);
  const check = (attributes, ...text) =>
    element('label.check', element('input', { type: 'checkbox', ...attributes }), element('span', ...text));
  const kbd = key => element('kbd', key);
  const box = panel('look-h', 'This browser', null,
    element('div.body.stack-4',
      element('div.field', element('span.label', { id: 'theme-h' }, 'Colours'),
        element('div.seg', { role: 'radiogroup', 'aria-labelledby': 'theme-h' }, THEMES.map(radio))),
      check({ 'data-single-keys': true, on: { change: event => chooseSingleKeys(event.target.checked) } },
        'Single keys: ', kbd('c'), ' ', kbd('/'), ' ', kbd('y'), ' ', kbd('j'), ' ', kbd('k'), ', ', kbd('g'),
        ' with a letter, and ', kbd('1'), ' to ', kbd('9'), ' for tabs', element('br'),
        element('span.help', 'Ctrl K works either way.')),
      check({ 'data-reader': true,
        on: { change: event => localStorage.setItem(READER, event.target.checked ? 'on' : 'off') } },
        'Read the terminal aloud to a screen reader'), element('dl.facts', { 'data-session': true })));
  showChoices(box);
  onChoice(() => showChoices(box));
  return box;
}

function showChoices(box) {
  for (const input of findAll('[name=theme]', box)) input.checked = input.value === theme();
  find('[data-single-keys]', box).checked = hasSingleKeys();
  find('[data-reader]', box).checked = localStorage.getItem(READER) === 'on';
}

function sessionFacts([session, total]) {
  const others = total - 1;
  return [
    element('dt', 'Session'),
    element('dd', 'since ', day(session.created_at), ', ', time(session.created_at, 'clock'),
      ` from ${session.address}; ends on `, day(session.ends_at), ' at the latest. ',
      element('a', { href: '/settings/sessions', cmd: ['api', 'GET', '/api/auth/sessions'], key: 'sessions' },
        others > 0 ? `${counted(others, 'other session')}` : 'Sessions')),
  ];
}

// ---- a new password, and with it a new session ----

function renewed(login) {
  setSession(login);
  announce('The password has been changed');
  refreshSoon();
}

startSettings({ read, show, failed: 'Your settings could not be read.',
  wants: ({ type }) => type.startsWith('token.') || type.startsWith('workspace.') });
