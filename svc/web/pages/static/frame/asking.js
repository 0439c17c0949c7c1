// What ends somebody's work, or cannot be undone, is asked about first.
import { element } from './dom.js';

// Resolves to true for the deed. The focus is on the harmless button; `line` is the command of the deed, if there is
// one.
export function ask({ title, words, deed, keep = 'Cancel', line = null, danger = false }) {
  const harmless = element('button', { class: 'btn', value: '', autofocus: true }, keep);
  const dialog = element('dialog', { 'aria-labelledby': 'ask-h', 'data-ask': true },
    element('form', { method: 'dialog' }, element('h2', { id: 'ask-h', class: 'ref' }, title),
      ...words.map(text => element('p', {}, text)),
      ...(line ? [element('div', { class: 'cmd' }, element('code', {}, line))] : []),
      element('div', { class: 'ends' }, harmless,
        element('button', { class: `btn primary${danger ? ' danger' : ''}`, value: 'deed', 'data-cmd': line }, deed))));
  document.body.append(dialog);
  return new Promise(resolve => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'deed');
    });
    dialog.showModal();
    harmless.focus();
  });
}
