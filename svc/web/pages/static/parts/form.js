// The fields of forms: label, control, hint and error.
import { element, find, findAll, icon, setAttribute } from '../frame/dom.js';

let controlNumber = 0;

// A field: `name` is the API's own, the control an input, a select or a textarea. `help` is null where there is never
// a hint.
export function field(name, label, control, { help = null, unit = '', optional = false, wide = '' } = {}) {
  control.id ||= `f-${name.replaceAll('.', '-')}`;
  control.name ||= name;
  control.dataset.field = name;
  const id = `${control.id}-h`;
  setAttribute(control, 'aria-describedby', help === null ? null : id);
  return element('div', { class: `field ${wide}`.trim() },
    element('label', { for: control.id }, label, optional && element('span.opt', ' optional')),
    unit ? element('div.unit', control, element('span', { 'aria-hidden': true }, unit)) : control,
    help !== null && element('span.help', { id }, help));
}

// An input for names, paths and numbers, which nothing completes or corrects; `kind` is mono or num.
export const plainInput = (kind, attributes = {}) =>
  element('input', { class: `input ${kind}`.trim(), autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false',
    ...attributes });

export const fieldOf = (form, name) => find(`[data-field="${CSS.escape(name)}"]`, form);

// Show the error of a control in its row or below it; without a text remove it.
export function setError(control, text = '') {
  const box = control.closest('.form-row') ?? control.closest('.field') ?? control.parentElement;
  control.id ||= `control-${++controlNumber}`;
  const id = `${control.id}-e`, before = find(`#${CSS.escape(id)}`, box);
  if ((before?.textContent ?? '') === text) return;
  before?.remove();
  const role = control === document.activeElement ? 'status' : null; // what is typed there now is not read again
  if (text) box.append(element('span.field-error', { id, role }, icon('warning'), element('span', text)));
  setAttribute(control, 'aria-invalid', Boolean(text));
  const help = find(':scope > .help[id]', control.closest('.field') ?? box)?.id;
  setAttribute(control, 'aria-describedby', [help, text && id].filter(Boolean).join(' ') || null);
}

// Show errors, `{field, message}`, at their fields, and none at the others. A part of a field, `env.0.name`, is the
// field's where it has none of its own. Returns the first control with an error, and the errors without a field.
export function showErrors(form, errors) {
  const controls = findAll('[data-field]', form), texts = new Map(), rest = [];
  for (const error of errors) {
    const { field: name, message } = error;
    const control = controls.filter(({ dataset: { field: own } }) => name === own || name.startsWith(`${own}.`))
      .sort((a, b) => b.dataset.field.length - a.dataset.field.length)[0];
    if (!control) {
      rest.push(error);
      continue;
    }
    const part = name.slice(control.dataset.field.length + 1);
    texts.set(control, [texts.get(control), part ? `${part}: ${message}` : message].filter(Boolean).join(' '));
  }
  for (const control of controls) setError(control, texts.get(control));
  return { first: controls.find(control => texts.has(control)) ?? null, rest };
}

// The same, with the focus on the first; false where an error has no field, or there is none.
export function pointAtErrors(form, errors = []) {
  const { first, rest } = showErrors(form, errors);
  first?.focus();
  return first !== null && rest.length === 0;
}
