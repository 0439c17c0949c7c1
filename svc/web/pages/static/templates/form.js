// Forms: what the API refuses goes to its field, and all else into a notice above the buttons.
import { element, find, findAll, setAttribute } from '../frame/dom.js';
import { isAway } from '../frame/frame.js';
import { refused } from '../frame/notices.js';

let numberOfField = 0;

// A labelled field. `name` is the API's own for it; `control` is an input, a select or a textarea.
export function field(title, name, control, { help = '', optional = false, wide = '' } = {}) {
  control.id ||= `field-${++numberOfField}`;
  setAttribute(control, 'data-field', name);
  const helpId = `${control.id}-help`;
  if (help) setAttribute(control, 'aria-describedby', helpId);
  return element('div', { class: `field ${wide}`.trim() },
    element('label', { for: control.id }, title, optional && element('span.opt', ' optional')), control,
    help && element('span.help', { id: helpId }, help));
}

export function clearErrors(form) {
  for (const node of findAll('.field-error', form)) node.remove();
  for (const control of findAll('[aria-invalid]', form)) {
    setAttribute(control, 'aria-invalid', null);
    setAttribute(control, 'aria-describedby', find(`#${control.id}-help`) ? `${control.id}-help` : null);
  }
}

// Say it at the fields that it names; what belongs to none goes into `place`. The focus goes to the first.
export function showErrors(form, place, error, what) {
  let first = null, isAll = error.fields.length > 0;
  for (const { field: name, message } of error.fields) {
    const control = findAll('[data-field]', form).find(one =>
      name === one.dataset.field || name.startsWith(`${one.dataset.field}.`)
    );
    if (!control) {
      isAll = false;
      continue;
    }
    first ??= control;
    const id = `${control.id}-error`;
    setAttribute(control, 'aria-invalid', 'true');
    setAttribute(control, 'aria-describedby', id);
    const rest = name.slice(control.dataset.field.length + 1);
    control.closest('.field').append(
      element('span.field-error', { id }, rest ? `${rest}: ${message}` : message)
    );
  }
  if (!isAll) {
    const notice = refused(error, { what });
    place.replaceChildren(notice);
    place.hidden = false;
    if (!first) notice.focus();
  }
  first?.focus();
}

// Send a form: the button is busy meanwhile. True when it was done.
export async function sendIn(form, button, place, what, request) {
  if (isAway() || button.getAttribute('aria-busy') === 'true') return false;
  clearErrors(form);
  place.replaceChildren();
  place.hidden = true;
  setAttribute(button, 'aria-busy', 'true');
  try {
    await request();
    return true;
  } catch (error) {
    if (!('retryable' in error)) throw error;
    if (error.status !== 401) showErrors(form, place, error, what);
    return false;
  } finally {
    setAttribute(button, 'aria-busy', null);
  }
}
