// A dialog with a form: it stays open, with what was typed, until the service has done it.
import { command, element, find, replace, setAttribute } from '../frame/dom.js';
import { isAway } from '../frame/frame.js';
import { refused } from '../frame/notices.js';

let numberOfDialogs = 0;

// Resolves to true once `submit` has done the deed, to false when it is closed. `submit` throws what the API refuses.
// `line` is the command, or a function that gives it anew whenever something is typed. The focus is on `focus`,
// else on the harmless button.
export function formDialog({ title, content, deed, keep = 'Cancel', line = null, danger = false, focus = null, submit, failed = '' }) {
  const id = `dialog-${numberOfDialogs += 1}`;
  const harmless = element('button', { class: 'btn', type: 'button', on: { click: () => dialog.close() } }, keep);
  const does = element('button', { class: `btn primary${danger ? ' danger' : ''}`, 'data-key': 'deed' }, deed);
  const place = element('div', { 'data-refused': true, hidden: true });
  const shown = line && command(typeof line === 'function' ? line() : line);
  const form = element('form', { on: { submit: send, input: update } }, element('h2', { id, class: 'ref' }, title), ...content,
    shown, place, element('div', { class: 'ends' }, harmless, does));
  const dialog = element('dialog', { 'aria-labelledby': id }, form);
  let isDone = false;

  function update() {
    if (typeof line === 'function') find('code', shown).textContent = line();
  }

  async function send(event) {
    event.preventDefault();
    if (does.getAttribute('aria-busy') || isAway()) return;
    setAttribute(does, 'aria-busy', 'true');
    place.hidden = true;
    try {
      await submit();
      isDone = true;
      dialog.close();
    } catch (error) {
      if (error.status !== 401) showRefusal(error);
    } finally {
      setAttribute(does, 'aria-busy', null);
    }
  }

  function showRefusal(error) {
    const rest = fieldErrors(form, error.fields ?? []);
    if (rest.length === 0 && error.fields?.length) return;
    replace(place, refused(error, { what: failed }));
    place.hidden = false;
    find('.notice', place).focus();
  }

  document.body.append(dialog);
  return new Promise(resolve => {
    dialog.addEventListener('close', () => { dialog.remove(); resolve(isDone); });
    dialog.showModal();
    (focus ?? harmless).focus();
    focus?.select?.();
  });
}

// Put what the API says about fields beside them, and the focus on the first; returns what belongs to no field.
export function fieldErrors(form, fields) {
  clearFieldErrors(form);
  const rest = [];
  let first = null;
  for (const { field, message } of fields) {
    const input = find(`[data-field="${CSS.escape(field)}"]`, form);
    if (!input) { rest.push({ field, message }); continue; }
    const id = `${input.id}-error`;
    input.setAttribute('aria-invalid', 'true');
    input.setAttribute('aria-describedby', [input.dataset.help, id].filter(Boolean).join(' '));
    input.closest('.field').append(element('span', { class: 'field-error', id }, message));
    first ??= input;
  }
  first?.focus();
  return rest;
}

export function clearFieldErrors(form) {
  for (const node of form.querySelectorAll('.field-error')) node.remove();
  for (const input of form.querySelectorAll('[aria-invalid]')) {
    input.removeAttribute('aria-invalid');
    setAttribute(input, 'aria-describedby', input.dataset.help ?? null);
  }
}

// A field: its label, the control with the API's name for it, and a word of help below.
export function labelled(label, control, { help = '', optional = false, kind = '', around = null } = {}) {
  const helpId = help ? `${control.id}-help` : null;
  if (helpId) { control.setAttribute('aria-describedby', helpId); control.dataset.help = helpId; }
  return element('div', { class: `field ${kind}` },
    element('label', { for: control.id }, label, optional && element('span', { class: 'opt' }, ' optional')),
    around ?? control, help && element('span', { class: 'help', id: helpId }, help));
}
