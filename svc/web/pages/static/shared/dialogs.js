// Dialogs of several screens: forms whose line follows what is typed, and what only the host can do.
import { command, element, find, findAll, setAttribute } from '../frame/dom.js';
import { isAway } from '../frame/frame.js';
import { refused } from '../frame/notices.js';

let dialogs = 0;

function open(title, ...content) {
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

// What is done on the host: the commands, and why not here.
export function hostDialog({ title, paragraphs, lines, extra = [] }) {
  open(title,
    element('form', { method: 'dialog' }, ...paragraphs.map(text => element('p', text)), ...extra,
      ...lines.map(command), element('div.ends', element('button.btn', { type: 'submit', autofocus: true }, 'Close'))));
}

// A form: `lineOf()` is its command, or '' for none; `send()` does it, and `failed` says what did not come about.
// Resolves to what `send` gave, or to null. The focus is on the first field, else on the harmless button.
export function formDialog({ title, fields, lineOf, action, keep = 'Cancel', send, danger = false, failed = '' }) {
  const code = element('code');
  const line = element('div.cmd', code);
  const place = element('div', { 'data-refused': true, hidden: true });
  const button = element('button', { type: 'submit', class: `btn primary${danger ? ' danger' : ''}`,
    'data-key': 'deed' }, action);
  const form = element('form', { novalidate: true, on: { submit } }, place, ...fields, line,
    element('div.ends', element('button.btn', { 'data-key': 'keep', on: { click: () => dialog.close() } }, keep),
      button));
  const follow = () => {
    const text = lineOf();
    code.textContent = text;
    line.hidden = text === '';
    setAttribute(button, 'data-cmd', text || null);
  };
  let result = null;
  const say = notice => {
    place.replaceChildren(...(notice ? [notice] : []));
    place.hidden = notice === null;
    if (notice) notice.focus();
  };

  async function submit(event) {
    event.preventDefault();
    if (isAway() || button.getAttribute('aria-busy') === 'true') return;
    say(null);
    clearErrors(form);
    setAttribute(button, 'aria-busy', 'true');
    try {
      result = await send() ?? true;
      dialog.close();
    } catch (error) {
      if (error.status === 401) return;
      if (!showErrors(form, error)) say(error instanceof Node ? error : refused(error, { what: failed }));
    } finally {
      setAttribute(button, 'aria-busy', null);
    }
  }

  form.addEventListener('input', follow);
  form.addEventListener('follow', follow);
  const dialog = open(title, form);
  follow();
  const first = find('.input', form) ?? find('[data-key=keep]', form);
  first.focus();
  first.select?.();
  return new Promise(resolve => dialog.addEventListener('close', () => resolve(result)));
}

// A field: its label, its control, what helps, and what was wrong.
export function field(name, label, control, help = null) {
  setAttribute(control, 'id', `f-${name}`);
  setAttribute(control, 'name', name);
  setAttribute(control, 'aria-describedby', help ? `f-${name}-h` : null);
  return element('div.field', { 'data-field': name }, element('label', { for: `f-${name}` }, label),
    control.parentElement ?? control, help && element('span.help', { id: `f-${name}-h` }, help));
}

// A number and its unit beside it.
export function withUnit(control, unit) {
  element('div.unit', control, element('span', { 'aria-hidden': 'true' }, unit));
  return control;
}

export function clearErrors(form) {
  for (const node of findAll('.field-error', form)) node.remove();
  for (const control of findAll('[aria-invalid]', form)) {
    setAttribute(control, 'aria-invalid', null);
    setAttribute(control, 'aria-describedby', find(`#${CSS.escape(control.id)}-h`, form) ? `${control.id}-h` : null);
  }
}

// Put the errors of fields to their fields, and the focus on the first. False where one belongs to none.
export function showErrors(form, error) {
  const places = (error.fields ?? []).map(({ field: name, message }) => ({ message,
    place: find(`[data-field="${CSS.escape(name)}"]`, form) })
  );
  if (places.length === 0 || places.some(({ place }) => !place)) return false;
  for (const { place, message } of places) {
    const control = find('.input', place), id = `${control.id}-e`;
    place.append(element('span.field-error', { id }, message));
    setAttribute(control, 'aria-invalid', 'true');
    setAttribute(control, 'aria-describedby', [control.getAttribute('aria-describedby'), id].filter(Boolean).join(' '));
  }
  find('[aria-invalid]', form).focus();
  return true;
}
