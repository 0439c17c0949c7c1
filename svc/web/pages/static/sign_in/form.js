// The form that begins a session: of the sign-in screen, and over a page whose session has ended.
import { call, session } from '../frame/api.js';
import { command, element, find, notice, setAttribute } from '../frame/dom.js';
import { refused, showOnly } from '../frame/notices.js';
import { commandText } from '../frame/commands.js';
import { time, commaList } from '../frame/format.js';
import { ADMIN_SET_PASSWORD } from '../generated/actions.js';

// `done` is called with the answer of the login.
export function signInForm({ name = '', done }) {
  const user = element('input.input', { id: 'user', name: 'username', autocomplete: 'username', autocapitalize: 'off',
    spellcheck: 'false', required: true, value: name });
  const password = element('input.input', { id: 'pass', name: 'password', type: 'password',
    autocomplete: 'current-password', required: true, 'aria-describedby': 'pass-h' });
  const button = element('button.btn.primary', { type: 'submit' }, 'Sign in');
  const answer = element('div', { 'data-answer': true, hidden: true });
  const form = element('form.stack-4', { on: { submit } }, answer,
    element('div.field', element('label', { for: 'user' }, 'Name'), user),
    element('div.field', element('label', { for: 'pass' }, 'Service password'), password,
      element('span.help', { id: 'pass-h' }, 'Not the Linux password.')), button);

  async function submit(event) {
    event.preventDefault();
    if (button.getAttribute('aria-busy') === 'true') return;
    showOnly(answer, null);
    setAttribute(button, 'aria-busy', true);
    try {
      const login = await call('POST', '/api/auth/login', { body: { username: user.value, password: password.value } });
      session.begin(login.session_secret);
      password.value = '';
      done(login);
    } catch (error) {
      showOnly(answer, noticeOf(error));
      password.value = '';
      if (error.status === 401 || error.status === 422) password.focus();
      else find('.notice', answer).focus();
    } finally {
      setAttribute(button, 'aria-busy', null);
    }
  }

  return form;
}

function noticeOf(error) {
  if (error.status === 429 && error.retryAfter !== null) return tooMany(error);
  return refused(error);
}

// The login is closed for a while, the host itself never.
function tooMany(error) {
  const opens = new Date(Date.now() + error.retryAfter * 1000).toISOString();
  return notice('danger', 'warning', { role: 'alert', tabindex: '-1' },
    element('p', 'Too many tries for this name or from this address. The login opens again at ', time(opens, 'clock'),
      '.'),
    element('p.muted.small', 'On the host itself nothing is closed: ', element('code', 'svc ws list'),
      ' works without a password.'), element('span.code', commaList(error.code, error.request_id)));
}

// For whom the form is of no use: how a password is set, and how to tell that this is the host.
export function signInHelp(form) {
  const set = command([ADMIN_SET_PASSWORD]);
  const user = find('[name=username]', form);
  const update = () => {
    find('code', set).textContent = commandText([ADMIN_SET_PASSWORD, user.value]);
  };
  form.addEventListener('input', update);
  update();
  return element('details.more', element('summary.small', 'No service password, or forgotten?'),
    element('div.stack-2', element('p.muted.small', 'An administrator sets one on the host:'), set,
      element('p.muted.small', "Is this the host you mean? Compare the certificate's SHA-256 with"),
      command(['admin tls-fingerprint'])));
}
