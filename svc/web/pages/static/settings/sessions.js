// Settings, sessions: the browsers that are signed in, and ending one or all others.
import { all, call } from '../frame/api.js';
import { element, find, findAll } from '../frame/dom.js';
import { ask } from '../frame/asking.js';
import { counted, time } from '../frame/format.js';
import { announce } from '../frame/notices.js';
import { refresh, perform } from '../screen/page.js';
import { put } from '../parts/still.js';
import { cell, tableOf } from '../parts/tables.js';
import { day, startSettings } from './page.js';

const known = { sessions: [] };

async function read(options) {
  known.sessions = await all('/api/auth/sessions', options);
}

const others = () => known.sessions.filter(session => !session.current);

function show() {
  if (!find('#se-h')) build();
  put(find('[data-list]'), known.sessions, () => [table()]);
  const rest = others().length;
  find('[data-count]').textContent = rest ? `this browser and ${counted(rest, 'other')}` : 'this browser alone';
  put(find('[data-all]'), others().map(session => session.id), () => (rest ? [endAllButton()] : []));
}

function build() {
  find('#screen').replaceChildren(
    element('section.panel', { 'aria-labelledby': 'se-h' },
      element('header', element('h2', { id: 'se-h', tabindex: '-1' }, 'Sessions'),
        element('span.muted.small', { 'data-count': true }), element('div.actions', { 'data-all': true })),
      element('div', { 'data-list': true }),
      element('footer',
        element('span.muted.small',
          'A session ends at its time; this browser signs out already when it is closed, unless it '
            + 'restores its tabs. One that is ended asks for the password at its next request. Workspaces and '
            + 'terminals run on.')))
  );
}

function table() {
  const node = tableOf('Sessions', ['Browser', 'Signed in', 'Last used', 'Ends', ''], { kind: '' });
  find('tbody', node).append(...known.sessions.map(rowOf));
  return node;
}

/** @param {Api.OwnSession} session */
function rowOf(session) {
  const { id, browser, address, current, created_at: began, last_used_at: used, idle_ends_at: idle, ends_at: ends } =
    session;
  const label = browser || 'unknown browser';
  return element('tr', { tabindex: '-1', 'data-id': id },
    cell(null, '',
      element('div.stack',
        element('span.row', element('span.strong', label), current && element('span.tag.ok', 'this browser')),
        element('span.muted.small', 'from ', element('span.mono.ref', address)))),
    cell('Signed in', 'small', day(began), ', ', time(began, 'clock')),
    cell('Last used', 'small', current ? 'now' : time(used, 'ago')),
    cell('Ends', 'small',
      element('div.stack', element('span', 'in ', time(idle, 'until'), idle < ends && ' if unused'),
        idle < ends && element('span.muted', day(ends), ' at the latest'))),
    cell(null, 'c-act', element('div.row', current ? signOutButton(session) : endButton(session, label))));
}

const endCommand = ({ id }) => ['api', 'DELETE', `/api/auth/sessions/${id}`];

/** @param {Api.OwnSession} session */
function signOutButton(session) {
  return element('button.btn.sm', { key: 'sign-out', cmd: endCommand(session),
    click: () => find('[data-sign-out]').click() }, 'Sign out');
}

/** @param {Api.OwnSession} session */
function endButton(session, label) {
  return element('button.btn.sm.danger', {
    'aria-label': `End ${label} from ${session.address}`,
    'data-action': true,
    key: `end-${session.id}`,
    cmd: endCommand(session),
    click: event => end(session, label, event.currentTarget),
  }, 'End');
}

function endAllButton() {
  return element('button.btn.sm.danger', { 'data-action': true, key: 'end-all', cmd: others().map(endCommand),
    click: event => endAll(event.currentTarget) }, 'End all others');
}

// Ended elsewhere meanwhile, or by itself: that is what was wanted.
const isGone = error => error.status === 404;

/** @param {Api.OwnSession} session */
async function end(session, label, button) {
  if (button.getAttribute('aria-disabled')) return;
  if (!await ask({ title: `End ${label}?`, paragraphs: [
    `The browser at ${session.address} must sign in again. What is typed there stays; workspaces and `
    + `terminals run on.`,
  ], action: 'End the session', cmd: endCommand(session), danger: true })) return;
  const at = others().findIndex(other => other.id === session.id);
  const isDone = await perform(button, { what: `${label} was not ended.`, refuse: isGone },
    () => call('DELETE', `/api/auth/sessions/${encodeURIComponent(session.id)}`));
  await refresh();
  if (!isDone) return;
  announce(`${label}: Ended`);
  const rest = findAll('[data-key^=end-]:not([data-key=end-all])');
  (rest[Math.min(at, rest.length - 1)] ?? find('#se-h')).focus();
}

async function endAll(button) {
  if (button.getAttribute('aria-disabled')) return;
  const number = others().length;
  const question = { title: 'End all other sessions?', paragraphs: [
    `${counted(number, 'browser')} must sign in again. What is typed there stays; workspaces and terminals run on.`,
  ], action: 'End all others', cmd: button.dataset.cmd, danger: true };
  if (!await ask(question)) return;
  let ended = 0;
  const isDone = await perform(button, { what: 'They were not ended.' }, async () => {
    ({ ended } = await call('DELETE', '/api/auth/sessions'));
  });
  await refresh();
  if (!isDone) return;
  announce(`${counted(ended, 'session')}: Ended`);
  find('#se-h').focus();
}

startSettings({ read, show, failed: 'Your sessions could not be read.', rows: 2 });
