// The request of a button: busy meanwhile, announced or refused, and the screen read again.
import { setAttribute } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { announce, answer, answerRefusal } from '../frame/notices.js';
import { refreshSoon } from './page.js';

// Send what a button does: it is busy meanwhile, and a refusal is answered with its next step, unless `refuse` takes
// it. Resolves to [what came], or to null where it was refused. `act` does what the refusal's own button says.
export async function perform(button, { what, done = '', act = null, refuse = null }, request) {
  if (isOffline() || button?.getAttribute('aria-busy') === 'true') return null;
  answer(null);
  if (button) setAttribute(button, 'aria-busy', 'true');
  try {
    const came = await request();
    if (done) announce(done);
    return [came];
  } catch (error) {
    if (!('retryable' in error)) throw error;
    if (error.status !== 401 && !refuse?.(error)) answerRefusal(error, what, act);
    return null;
  } finally {
    if (button) setAttribute(button, 'aria-busy', null);
    refreshSoon();
  }
}
