// Sending a form: what is refused is said at its fields, else in a notice.
import { element, find, setAttribute } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { refused, showOnly } from '../frame/notices.js';
import { pointAtErrors, showErrors } from './form.js';

// The place of a form's notice.
export const noticePlace = () => element('div', { 'data-refused': true, hidden: true });

function showNotice(form, notice) {
  const place = find('[data-refused]', form);
  showOnly(place, notice);
  if (notice && !find('[aria-invalid]', form)) notice.focus();
}

// Show what an error says at its fields, else in the notice; a notice of its own may be thrown as an element.
function showRefusal(form, error, what) {
  if (error instanceof Node) showNotice(form, error);
  else if (!error.fields) throw error;
  else if (!pointAtErrors(form, error.fields))
    showNotice(form, refused(error, { what: typeof what === 'string' ? what : what() }));
}

// Send a form: its button is busy meanwhile; `what` is what was not done, as a sentence or a function. Resolves to
// [what came], or to null where it was refused.
export async function sendForm(form, button, what, request) {
  if (isOffline() || button.getAttribute('aria-busy') === 'true') return null;
  showNotice(form, null);
  showErrors(form, []);
  setAttribute(button, 'aria-busy', true);
  try {
    return [await request()];
  } catch (error) {
    if (error.status !== 401) showRefusal(form, error, what);
    return null;
  } finally {
    setAttribute(button, 'aria-busy', null);
  }
}
