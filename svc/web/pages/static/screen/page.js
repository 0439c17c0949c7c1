// The life cycle of a screen: read, render or refuse, keep up to date; and the requests of its buttons.
import { session } from '../frame/api.js';
import { find, findAll, setAttribute } from '../frame/dom.js';
import { onEvent, onGap, onState } from '../frame/events.js';
import { goLive, isAway, isRead } from '../frame/frame.js';
import { announce, answer, answerRefusal, unread } from '../frame/notices.js';
import { delayed, oneAtATime, readFirst } from '../frame/turns.js';
import { beginFrame } from './begin.js';
import { isUnderHand } from '../shared/still.js';

const whole = find('#screen');
const page = { isVisible: false };

// Begin a screen, whose content is in #screen. `read({ background })` reads all that it shows, and `show()` shows it:
// after each reading, and when the service goes away and comes back. `loading()` gives the skeleton; `failed` is what
// could not be done, as a sentence or a function of the error; `wants(event)` says whether an event changes what is
// shown. Where they are given: `may(session)` shows something else for who may not see it, and is false then;
// `gone(error)` is what is shown instead of a refusal, or null; `unready()` puts away what stands for what is to come;
// `later()` reads what no first look waits for. Resolves to the session, once the screen is live.
export async function startPage({ may = null, later = () => {}, ...screen }) {
  Object.assign(page, { wants: () => false, gone: () => null, unready: () => {} }, screen);
  onEvent(event => {
    if (page.isVisible && page.wants(event)) refreshSoon();
  });
  onGap(() => {
    if (page.isVisible) refreshSoon();
  });
  onState(showNow);
  const frame = beginFrame({ refresh: () => (page.isVisible ? refresh() : begin()) });
  if (!session.secret) await frame; // it leaves for the sign-in screen
  if (may && !may(await frame)) return new Promise(() => {});
  await begin();
  const found = await frame;
  await later();
  goLive();
  return found;
}

const begin = () =>
  readFirst(() => page.read({ background: false }), {
    loading: () => {
      if (!page.isVisible) whole.replaceChildren(...[page.loading()].flat());
    },
    show: showRead,
    fail: error => showError(error, begin),
  });

function showRead() {
  isRead();
  if (!page.isVisible) whole.replaceChildren();
  page.isVisible = true;
  showNow();
}

// True once the content was read and may be seen.
export const isVisible = () => page.isVisible;

// Render what was read; postponed while a pointer button is down.
export function showNow() {
  if (!page.isVisible || isUnderHand(whole, showNow)) return;
  page.show();
  for (const button of findAll('[data-deed]')) setAttribute(button, 'aria-disabled', isAway() ? 'true' : null);
}

// Read again and render. On 403 and 404 show the error; on other failures keep the last content.
export const refresh = oneAtATime(async () => {
  try {
    await page.read({ background: true });
    showRead();
  } catch (error) {
    if (error.status === 403 || error.status === 404) showError(error, null);
    else if (!('retryable' in error)) throw error;
  }
});

export const refreshSoon = delayed(refresh);

function showError(error, retry) {
  page.isVisible = false;
  page.unready();
  const { failed } = page;
  whole.replaceChildren(page.gone(error) ?? unread(error, typeof failed === 'string' ? failed : failed(error), retry));
}

// Send what a button does: it is busy meanwhile, and a refusal is answered with its next step, unless `refuse` takes
// it. Resolves to [what came], or to null where it was refused. `act` does what the refusal's own button says.
export async function perform(button, { what, done = '', act = null, refuse = null }, request) {
  if (isAway() || button?.getAttribute('aria-busy') === 'true') return null;
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
