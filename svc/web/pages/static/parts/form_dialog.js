// A dialog with a form, whose command follows what is typed.
import { commandText } from '../frame/commands.js';
import { element, find, setAttribute } from '../frame/dom.js';
import { openDialog } from './dialogs.js';
import { noticePlace, sendForm } from './send_form.js';

// A form: `commandOf()` is its command, or '' for none; `send()` does it, and `failed` says what did not come about.
// Resolves to what `send` gave, or to null. The focus is on the first field, else on the harmless button. `checks` has
// the browser check the fields before.
export function formDialog(
  { title, fields, commandOf, action, keep = 'Cancel', send, danger = false,
    failed = /** @type {string | (() => string)} */ (''), checks = false },
) {
  const code = element('code');
  const box = element('div.cmd', code);
  const button = element('button', { type: 'submit', class: `btn primary${danger ? ' danger' : ''}`, key: 'confirm' },
    action);
  const form = element('form', { novalidate: !checks, on: { submit } }, noticePlace(), ...fields, box,
    element('div.ends', element('button.btn', { key: 'keep', click: () => dialog.close() }, keep), button));
  const follow = () => {
    const text = commandText(commandOf());
    code.textContent = text;
    box.hidden = text === '';
    setAttribute(button, 'data-cmd', text || null);
  };
  let result = null;

  async function submit(event) {
    event.preventDefault();
    const came = await sendForm(form, button, failed, send);
    if (!came) return;
    result = came[0] ?? true;
    dialog.close();
  }

  form.addEventListener('input', follow);
  form.addEventListener('follow', follow);
  const dialog = openDialog(title, form);
  follow();
  const first = find('.input', form) ?? find('[data-key=keep]', form);
  first.focus();
  first.select?.();
  return new Promise(resolve => dialog.addEventListener('close', () => resolve(result)));
}
