// Dialogs of several screens: forms whose line follows what is typed, and what only the host can do.
import { command, element, find, setAttribute } from '../frame/dom.js';
import { noticePlace, sendForm } from './form.js';

let dialogs = 0;

// Open a dialog with this title. When it closes, the focus goes back to what opened it.
export function openDialog(title, ...content) {
  const id = `dialog-${dialogs += 1}`;
  const dialog = element('dialog', { 'aria-labelledby': id }, ...content);
  find('form, .in', dialog).prepend(element('h2.ref', { id }, title));
  const opener = /** @type {HTMLElement} */ (document.activeElement);
  const row = /** @type {HTMLElement} */ (opener?.closest('[data-id]'))?.dataset.id, key = opener?.dataset.key;
  document.body.append(dialog);
  dialog.addEventListener('close', () => {
    dialog.remove();
    // The row may be another element by now: back to the control that is in its place.
    const again = key
      && find(
        row ? `[data-id="${CSS.escape(row)}"] [data-key="${CSS.escape(key)}"]` : `[data-key="${CSS.escape(key)}"]`
      );
    if (document.activeElement === document.body) (opener.isConnected ? opener : again)?.focus();
  });
  dialog.showModal();
  return dialog;
}

// The button that closes a dialog, in a form of its own or in the dialog's.
export const closeButton = () => element('button.btn', { type: 'submit', autofocus: true }, 'Close');

// What is done on the host: the commands, and why not here.
export function hostDialog({ title, paragraphs, lines, extra = [] }) {
  openDialog(title,
    element('form', { method: 'dialog' }, ...paragraphs.map(text => element('p', text)), ...extra,
      ...lines.map(command), element('div.ends', closeButton())));
}

// A form: `lineOf()` is its command, or '' for none; `send()` does it, and `failed` says what did not come about.
// Resolves to what `send` gave, or to null. The focus is on the first field, else on the harmless button. `checks` has
// the browser check the fields before.
export function formDialog(
  { title, fields, lineOf, action, keep = 'Cancel', send, danger = false,
    failed = /** @type {string | (() => string)} */ (''), checks = false },
) {
  const code = element('code');
  const line = element('div.cmd', code);
  const button = element('button', { type: 'submit', class: `btn primary${danger ? ' danger' : ''}`,
    'data-key': 'deed' }, action);
  const form = element('form', { novalidate: !checks, on: { submit } }, noticePlace(), ...fields, line,
    element('div.ends', element('button.btn', { 'data-key': 'keep', on: { click: () => dialog.close() } }, keep),
      button));
  const follow = () => {
    const text = lineOf();
    code.textContent = text;
    line.hidden = text === '';
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
