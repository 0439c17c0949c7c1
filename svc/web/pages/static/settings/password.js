// The service password: what a new one ends is said before; this browser goes on with a session of its own.
import { call, session } from '../frame/api.js';
import { element, find, notice, panel } from '../frame/dom.js';
import { renewSession } from '../frame/frame.js';
import { showOnly } from '../frame/notices.js';
import { counted } from '../frame/format.js';
import { ADMIN_SET_PASSWORD } from '../generated/actions.js';
import { field, pointAtErrors, showErrors } from '../parts/form.js';
import { perform } from '../screen/page.js';

// `renewed` is called with the login that follows.
export function passwordPanel({ user, renewed }) {
  const least = user.superuser ? 12 : 8;
  const present = secret('p0', 'current_password', 'current-password');
  const fresh = secret('p1', 'password', 'new-password');
  const shows = element('input', { type: 'checkbox', on: { change: () => {
    for (const input of [present, fresh]) input.type = shows.checked ? 'text' : 'password';
  } } });
  const button = element('button.btn', { type: 'submit', 'data-action': true, key: 'password',
    cmd: [ADMIN_SET_PASSWORD, user.name] }, 'Change password');
  const form = element('form.body.stack-4', { on: { submit: event => {
    event.preventDefault();
    change();
    // for password managers
  } } }, element('input', { type: 'text', autocomplete: 'username', value: user.name, readonly: true, hidden: true }),
    field('current_password', 'Present password', present), field('password', 'New password', fresh, {
      help: `${least} to 64 characters of any kind; several unrelated words make a good one.`,
    }), element('label.check.small', shows, element('span', 'Show what I type')),
    notice('warn.inset', 'warning', element('p.small', { 'data-ends': true })),
    element('div', { 'data-changed': true, hidden: true }), element('div.row', button));

  async function change() {
    const path = `/api/users/${encodeURIComponent(user.name)}/password`;
    let isChanged = false;
    const end = async () => {
      await call('PUT', path, { body: { current_password: present.value, password: fresh.value } });
      isChanged = true;
    };
    const begin = () => call('POST', '/api/auth/login', { body: { username: user.name, password: fresh.value } });
    showErrors(form, []);
    notify(null);
    const request = () =>
      renewSession(end, async () => {
        const login = await begin();
        renewed(login);
        return login;
      });
    const refuse = error => {
      if (isChanged) leave();
      return isChanged || pointAtErrors(form, error.fields);
    };
    const isDone = await perform(button, { what: 'The password was not changed.', refuse }, request);
    if (!isDone) return;
    form.reset();
    for (const input of [present, fresh]) input.type = 'password';
    notify(
      notice('ok.inset', 'check', { role: 'status', tabindex: '-1' },
        element('p.small',
          'The password has been changed. This browser has a new session; the others and all tokens have ended.'))
    );
  }

  function notify(content) {
    const place = find('[data-changed]', form);
    showOnly(place, content);
    content?.focus();
  }

  return panel('pw-h', 'Service password', element('span.muted.small', 'for browsers; not the Linux one'), form);
}

function secret(id, name, autocomplete) {
  return element('input.input', { id, name, type: 'password', autocomplete, required: true });
}

// The new password holds, but no session with it could be begun: the sign-in screen says so.
function leave() {
  session.end();
  location.assign(`/sign-in?why=password&next=${encodeURIComponent('/settings')}`);
}

// Before it is pressed: what a new password ends.
export function showWhatEnds({ tokens, sessions }) {
  const place = find('[data-ends]');
  const also = sessions > 1 ? `all your ${sessions} sessions` : 'your session';
  const text = `A new password ends ${also}${
    tokens ? ` and your ${counted(tokens, 'API token')}` : ''
  }. This browser signs in again by itself.`;
  if (place.textContent !== text) place.textContent = text;
}
