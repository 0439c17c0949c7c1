// The session has ended while a page is open: sign in over it, with what was typed kept.
import { element, find, icon } from '../frame/dom.js';
import { signInForm } from './form.js';

// `reason` says why; `done(login)` is called once there is a session again.
export function askToSignIn({ name, reason, done }) {
  const dialog = element('dialog', { id: 'signed-out', 'aria-labelledby': 'signed-out-h' },
    element('div.in', element('h2', { id: 'signed-out-h' }, 'Sign in again'),
      element('div.notice.warn.inset', icon('lock'),
        element('div', element('p', reason, ' What you typed is kept on this page.'))), signInForm({ name, done })));
  dialog.addEventListener('cancel', event => event.preventDefault());
  document.body.append(dialog);
  dialog.showModal();
  find('[name=password]', dialog).focus();
}
