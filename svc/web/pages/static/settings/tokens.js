// Settings, API tokens: what there is, what ends soon, revoking; and the command that makes one, which only the host
// does.
import { all, call } from '../frame/api.js';
import { command, element, find, findAll, icon, panel } from '../frame/dom.js';
import { ask } from '../frame/asking.js';
import { setCommand } from '../frame/foot.js';
import { commandText } from '../frame/commands.js';
import { time } from '../frame/format.js';
import { TOKEN_CREATE, TOKEN_REVOKE } from '../generated/actions.js';
import { announce } from '../frame/notices.js';
import { refresh, perform } from '../screen/page.js';
import { put } from '../parts/still.js';
import { cell, tableOf } from '../parts/tables.js';
import { field, setError, plainInput } from '../parts/form.js';
import { countOnTab, day, startSettings } from './page.js';

const NAME_MAX = 64, DAYS_MAX = 365, DAYS = 90;
const known = { tokens: [] };

async function read(options) {
  known.tokens = await all('/api/tokens', options);
}

function show() {
  if (!find('#new-h')) build();
  countOnTab(known.tokens.filter(token => token.expires_soon).length);
  put(find('[data-list]'), known.tokens, () => {
    check();
    return list();
  });
}

function build() {
  find('#screen').replaceChildren(
    element('div.cols.side-r',
      element('section.panel', { 'aria-labelledby': 'tk-h' },
        element('header', element('h2', { id: 'tk-h', tabindex: '-1' }, 'API tokens'),
          element('span.muted.small', 'act for you on the HTTP API, from other hosts')),
        element('div', { 'data-list': true })), element('div.stack-4', newPanel(), mayPanel()))
  );
}

// ---- the list ----

function list() {
  if (known.tokens.length === 0) {
    return [
      element('div.empty', element('h2', 'No tokens'),
        element('p',
          'On this host nothing needs one. A program elsewhere does: name it, and the command that makes its '
            + 'token stands beside.')),
    ];
  }
  const table = tableOf('API tokens', ['Name', 'Begins with', 'Expires', 'Last used', ''], { kind: '' });
  find('tbody', table).append(...known.tokens.map(rowOf));
  return [table];
}

function rowOf(token) {
  const { id, name, prefix, scopes, created_at: created, last_used_at: used, last_used_from: from } = token;
  return element('tr', { tabindex: '-1', 'data-id': id },
    cell(null, '',
      element('div.stack', element('bdi.name.ref', name),
        element('span.muted.small', 'made ', day(created), scopes?.length ? `, ${scopes.join(', ')}` : ''))),
    cell('Begins with', 'mono small', prefix), cell('Expires', '', element('div.stack', ...expiry(token))),
    cell('Last used', 'muted small', ...(used
      ? [time(used, 'ago'), element('br'),
        from && element('span', { class: from.length < 16 ? 'nw' : null }, `from ${from}`)].filter(Boolean)
      : ['never'])), cell(null, 'c-act', element('div.row', element('button.btn.sm.danger', {
        'aria-label': `Revoke ${name}`,
        'data-action': true,
        key: `revoke-${id}`,
        cmd: revokeCommand(token),
        click: event => revoke(token, event.currentTarget),
      }, 'Revoke'))));
}

function expiry({ status, expires_soon: isSoon, expires_at: at }) {
  if (status === 'expired')
    return [element('span.state.stopped', 'expired'),
      element('span.muted.small', day(at), '; revoke it to clear the list')];
  const left = isSoon
    ? element('span.state.warn', { title: 'expires within seven days' },
      element('span', 'in ', time(at, 'until'), element('span.vh', ', expires within seven days')))
    : element('span', 'in ', time(at, 'until'));
  return [left, element('span.muted.small', day(at), isSoon && '; make its successor now')];
}

// ---- revoking ----

// By its name, where that is plain and means this one; else by its id.
const revokeCommand = (
  { id, name, status },
) => [TOKEN_REVOKE, status === 'active' && /^\w[\w.@+-]*$/.test(name) && !name.startsWith('svc_pat_') ? name : id];

function lastUse({ last_used_at: used, last_used_from: from }) {
  return used
    ? `It was last used ${time(used, 'ago').textContent}${from ? ` from ${from}` : ''}.`
    : 'It was never used.';
}

async function revoke(token, button) {
  if (button.getAttribute('aria-disabled')) return;
  const { id, name, status } = token;
  const text = status === 'expired'
    ? 'It has expired, and is of no use to anybody. This clears it from the list.'
    : `The next call with it is refused, and it does not come back. ${lastUse(token)}`;
  if (!await ask({ title: `Revoke ${name}?`, paragraphs: [text], action: `Revoke ${name}`, cmd: revokeCommand(token),
    danger: true })) return;
  const at = known.tokens.findIndex(other => other.id === id);
  if (!await perform(button, { what: `${name} was not revoked.`, refuse: isGone },
    () => call('DELETE', `/api/tokens/${encodeURIComponent(id)}`))) {
    await refresh();
    return;
  }
  await refresh();
  announce(`${name}: Revoked`);
  const rest = findAll('[data-key^=revoke-]');
  (rest[Math.min(at, rest.length - 1)] ?? find('#tk-h')).focus();
}

// Revoked elsewhere meanwhile: that is what was wanted.
const isGone = error => error.status === 404;

// ---- a new one ----

function newPanel() {
  const name = plainInput('mono', { id: 'tn', name: 'name', placeholder: 'laptop', on: { input: check } });
  const files = element('input', { type: 'checkbox', id: 'tf', name: 'files', on: { change: check } });
  const days = element('input.input.num', { id: 'te', name: 'expires_days', type: 'number', min: '1',
    max: String(DAYS_MAX), value: String(DAYS), on: { input: check } });
  const box = (title, ...content) => panel('new-h', title, null, element('div.body.stack-4', ...content));
  return box('A new token',
    element('p.soft.small',
      'Tokens are made on the host, where the kernel says who you are. The secret is printed once, here into a '
        + 'file that only you can read, and kept nowhere.'),
    element('div.form-grid', field('name', 'Name', name, { wide: 'w2' }),
      field('expires_days', 'Lifetime', days, { unit: 'days', wide: 'w2' })),
    element('label.check', { for: 'tf' }, files, element('span', 'It also reads and writes my files')),
    element('div', { 'data-create': true }, command('')),
    element('p.muted.small', "Then, where it is used, with that file and the host's certificate ",
      element('span.mono', 'svc.pem'), ', which an administrator gives you:'), command(
      `(umask 077; printf 'Authorization: Bearer %s\\n' "$(cat svc-token)" >svc-header)\ncurl -sS `
        + `--fail-with-body --cacert svc.pem -H @svc-header ${location.origin}/api/workspaces`
    ));
}

const createCommand = (name, days,
  files) => [TOKEN_CREATE, name, ['--expires', days || DAYS], ['--scope', files && 'files']];

// While it is typed: the command, and what the service would refuse.
function check() {
  const name = find('#tn'), days = find('#te');
  const text = name.value.trim(), number = Number(days.value), isFiles = find('#tf').checked;
  const isTaken = known.tokens.some(token => token.status === 'active' && token.name === text.normalize('NFC'));
  setError(name, isTaken
    ? 'an active token has this name'
    : [...text].length > NAME_MAX
    ? `has at most ${NAME_MAX} characters`
    : '');
  setError(days, Number.isInteger(number) && number >= 1 && number <= DAYS_MAX ? '' : `is 1 to ${DAYS_MAX} days`);
  const cmd = createCommand(text, days.value, isFiles);
  find('[data-create] code').textContent = `(umask 077; ${commandText(cmd)} >svc-token)`;
  setCommand(text === '' && days.value === String(DAYS) && !isFiles ? ['token list'] : cmd);
}

function mayPanel() {
  const row = (kind, name, text) =>
    element('span.row.nowrap', element('span', { class: kind }, icon(name)),
      element('span', element('span.vh', kind === 'is-ok' ? 'may: ' : 'never: '), text));
  return panel('may-h', 'What a token may', null,
    element('div.body.stack-2.small', row('is-ok', 'check', 'workspaces, templates, images, operations: yours'),
      row('is-ok', 'check', 'your files, if it is made with that scope'),
      row('muted', 'close', 'the audit, other tokens'),
      row('muted', 'close', 'anything an administrator does, whoever owns it')));
}

startSettings({ read, show, failed: 'Your tokens could not be read.', wants: ({ type }) => type.startsWith('token.') });
