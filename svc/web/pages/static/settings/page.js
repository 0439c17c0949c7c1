// What the three pages of the settings share: their skeleton, the tab, fields and days.
import { element, find, findAll, icon, setAttribute } from '../frame/dom.js';
import { showExpiring, skeleton } from '../frame/frame.js';
import { startPage } from '../screen/page.js';

let signedIn = null;

// Begin a page as startPage does; `show(session)` gets the session, and `rows` is the number of rows of the skeleton.
export function startSettings({ rows = 4, show, ...screen }) {
  return startPage({
    ...screen,
    show: () => show(signedIn),
    loading: () => skeletonNow(rows),
    may: found => {
      setSession(found);
      countOnTab(found.attention.tokens_expiring);
      return true;
    },
  });
}

// The session may have been replaced by another.
export function setSession(found) {
  signedIn = { ...signedIn, ...found };
}

function skeletonNow(rows) {
  const row = () => element('div.row', skeleton('3', '2', '3'));
  return element('section.panel', { 'aria-busy': 'true', 'aria-label': 'Loading settings' },
    element('header', skeleton('2')), element('div.body.stack-4', Array.from({ length: rows }, row)));
}

// The tokens that expire soon, on the tab and in the navigation.
export function countOnTab(number) {
  showExpiring(number);
  const tab = find('[data-tab-of=settings_tokens]');
  find('.count', tab)?.remove();
  if (number)
    find('kbd', tab).before(
      element('span.count.warn', String(number),
        element('span.vh', ` ${number === 1 ? 'expires' : 'expire'} within seven days`))
    );
}

// ---- fields ----

// A field: its label, the control, whose name is the API's, and a word of help below.
export function field(label, control, { help = '', around = control } = {}) {
  const id = `${control.id}-h`;
  if (help) {
    control.dataset.help = id;
    control.setAttribute('aria-describedby', id);
  }
  return element('div.field', element('label', { for: control.id }, label), around,
    help && element('span.help', { id }, help));
}

// What is wrong with a field, below it; an empty text takes it away.
export function fieldError(control, text) {
  const id = `${control.id}-e`;
  find(`#${id}`)?.remove();
  setAttribute(control, 'aria-invalid', text ? 'true' : null);
  setAttribute(control, 'aria-describedby', [text && id, control.dataset.help].filter(Boolean).join(' ') || null);
  if (text)
    (find(':scope > .help', control.closest('.field')) ?? control.closest('.field').lastChild).before(
      element('span.field-error', { id }, icon('warning'), element('span', text))
    );
}

// What the API says of fields, each beside its own, and the focus on the first; false when it says nothing of them.
export function fieldErrors(form, fields) {
  const controls = findAll('[name]', form);
  for (const control of controls)
    fieldError(control, fields.find(({ field: name }) => name === control.name)?.message ?? '');
  const first = controls.find(control => control.getAttribute('aria-invalid'));
  first?.focus();
  return first !== undefined;
}

// A day, exact in its title.
export function day(iso) {
  const date = new Date(iso);
  const isThisYear = date.getFullYear() === new Date().getFullYear();
  const text = date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short',
    year: isThisYear ? undefined : 'numeric' });
  return element('time', { datetime: date.toISOString(),
    title: `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC` }, text);
}
