// Dialogs of several screens, and what only the host can do.
import { command, element, find } from '../frame/dom.js';

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
export function hostDialog({ title, paragraphs, commands, extra = [] }) {
  openDialog(title,
    element('form', { method: 'dialog' }, ...paragraphs.map(text => element('p', text)), ...extra,
      ...commands.map(command), element('div.ends', closeButton())));
}
