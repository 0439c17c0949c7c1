// The session has ended while a page is open: sign in over it, with what was typed kept.
import { element, find, notice } from '../frame/dom.js';
import { signInForm } from './form.js';

// `reason` says why; `done(login)` is called once there is a session again.
export function askToSignIn({ name, reason, done }) {
  const dialog = element('dialog', { id: 'signed-out', 'aria-labelledby': 'signed-out-h' },
    element('div.in', element('h2', { id: 'signed-out-h' }, 'Sign in again'),
      notice('warn.inset', 'M3.5 7h9v7h-9zM5.5 7V4.5a2.5 2.5 0 0 1 5 0V7',
        element('p', reason, ' What you typed is kept on this page.')), signInForm({ name, done })));
  dialog.addEventListener('cancel', event => event.preventDefault());
  document.body.append(dialog);
  dialog.showModal();
  find('[name=password]', dialog).focus();
}
