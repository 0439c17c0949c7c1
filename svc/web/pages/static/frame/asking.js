// Confirmation dialogs, for actions that end somebody's work or cannot be undone.
import { code, element } from './dom.js';

// Resolves to true if confirmed. The focus is on Cancel; `cmd` is the command of the action, or null.
export function ask({ action, title = `${action}?`, paragraphs, keep = 'Cancel', cmd = null, danger = false }) {
  const harmless = element('button.btn', { type: 'submit', value: '', autofocus: true }, keep);
  const dialog = element('dialog', { 'aria-labelledby': 'ask-h', 'data-ask': true },
    element('form', { method: 'dialog' }, element('h2.ref', { id: 'ask-h' }, title),
      ...paragraphs.map(text => element('p', text)), cmd && element('div.cmd', code(cmd)),
      element('div.ends', harmless,
        element('button', { type: 'submit', class: `btn primary${danger ? ' danger' : ''}`, value: 'confirm', cmd },
          action))));
  document.body.append(dialog);
  return new Promise(resolve => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'confirm');
    });
    dialog.showModal();
    harmless.focus();
  });
}
