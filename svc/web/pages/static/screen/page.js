// The life cycle of a screen: read, render or refuse, keep up to date; and what its buttons send.
import { call, session } from '../frame/api.js';
import { find, findAll, setAttribute } from '../frame/dom.js';
import { onEvent, onGap, onState } from '../frame/events.js';
import { goLive, isOffline, isRead, startFrame } from '../frame/frame.js';
import { announce, answer, answerRefusal, unread } from '../frame/notices.js';
import { afterAMoment, oneAtATime } from '../frame/turns.js';
import { isUnderHand } from '../parts/still.js';

// What the frame loads when it is first used: of higher floors, so it gets them here.
const LATER = {
  palette: () => import('../palette/dialog.js'),
  signIn: () => import('../sign_in/again.js'),
  meant: () => import('./meant.js'),
};

const screenNode = find('#screen');
/** @type {(...values: any[]) => any} */
const nothing = () => {};

// `visit` counts what was opened: what an earlier one brings is dropped. `isCovered`: something stands for the content.
const page = { isOpening: false, isVisible: false, isNew: false, isCovered: true, visit: 0, timer: null, delayMs: 100,
  comes: false, wants: nothing, gone: nothing, unready: nothing, took: nothing, back: nothing,
  cover: (...content) => screenNode.replaceChildren(...content) };

// Begin a screen, whose content is in #screen. `read({ background })` reads all of it; `show({ isNew })` renders it:
// after each reading, and when the service is or is no longer offline; `isNew` the first time since it was opened.
// `loading()` gives the skeleton, or null to keep what is there; `failed` is what could not be done, as a sentence or a
// function of the error; `wants(event)` says whether an event changes the content. Optional: `took(found)` keeps what
// `read` resolved to, unless something else was opened meanwhile; `may(session)` renders something else for who may not
// see it, and is false then; `gone(error)` gives content in place of a refusal, or null; `unready()` removes skeletons
// elsewhere on the page; `cover(...content)` puts content in place of the screen's own, and without content removes it;
// `comes` is true where events also concern what could not be read; `back()` is called when the person is back after a
// while; `later()` reads what no first look waits for. Resolves to the session, once the screen is live.
export async function startPage({ may = null, later = nothing, ...screen }) {
  Object.assign(page, screen);
  onEvent(event => {
    if ((page.isVisible || page.comes) && page.wants(event)) refreshSoon();
  });
  onGap(() => {
    if (page.isVisible || page.comes) refreshSoon();
  });
  onState(showNow);
  const frame = startFrame({ later: LATER, refresh: () => {
    page.back();
    return page.isVisible ? refresh() : openPage();
  } });
  if (!session.secret) await frame; // it leaves for the sign-in screen
  if (may && !may(await frame)) return new Promise(nothing);
  await openPage();
  const found = await frame;
  await later();
  goLive();
  return found;
}

// Read as at first: a skeleton after a moment, then the content or the error. The frame itself shows a 401.
export async function openPage() {
  const own = ++page.visit;
  page.isVisible = false;
  page.isOpening = true;
  const ready = afterAMoment(async () => {
    const content = await page.loading();
    if (content && own === page.visit && !page.isVisible) cover(content);
  });
  try {
    const found = await page.read({ background: false }).finally(ready);
    if (own === page.visit) showRead(found);
  } catch (error) {
    if (own === page.visit && error.status !== 401) await showError(error);
  }
  if (own === page.visit) page.isOpening = false;
}

// Show what was read, or what an action answered with.
export function showRead(found) {
  isRead();
  page.took(found);
  if (page.isCovered) cover();
  page.isNew ||= !page.isVisible;
  page.isVisible = true;
  showNow();
}

function cover(...content) {
  page.isCovered = content.length > 0;
  page.cover(...content.flat());
}

// True once the content was read and may be seen.
export const isVisible = () => page.isVisible;

// Render what was read; postponed while a pointer button is down.
export function showNow() {
  if (!page.isVisible || isUnderHand(screenNode, showNow)) return;
  const { isNew } = page;
  page.isNew = false;
  page.show({ isNew });
  for (const button of findAll('[data-action]')) setAttribute(button, 'aria-disabled', isOffline());
}

// Read again and render; not while it is being opened. On 403 and 404 show the error; on other failures keep the last
// content.
export const refresh = oneAtATime(async () => {
  if (page.isOpening) return;
  const own = page.visit;
  try {
    const found = await page.read({ background: true });
    if (own === page.visit) showRead(found);
  } catch (error) {
    if (!('retryable' in error)) throw error;
    const isVisibleError = [403, 404].includes(error.status) || (!page.isVisible && error.status !== 401);
    if (isVisibleError && own === page.visit) await showError(error);
  }
});

export function refreshSoon() {
  clearTimeout(page.timer);
  page.timer = setTimeout(refresh, page.delayMs);
}

async function showError(error) {
  const own = page.visit, { failed } = page;
  page.isVisible = false;
  page.unready();
  const content = await page.gone(error)
    ?? unread(error, typeof failed === 'string' ? failed : failed(error), openPage);
  if (own === page.visit && !page.isVisible) cover(content);
}

// ---- buttons ----

/**
 * Send what a button does: it is busy meanwhile, and a refusal is answered with its next step, unless `refuse` takes
 * it. Resolves to [what came], or to null where it was refused. `act` does what the refusal's own button says.
 * @param {HTMLElement | null} button
 * @param {{what: string, done?: string, act?: (action: any) => any, refuse?: (error: any) => any}} options
 * @param {() => Promise<any>} request
 */
export async function perform(button, { what, done = '', act = nextStep, refuse = null }, request) {
  if (isOffline() || button?.getAttribute('aria-busy') === 'true') return null;
  answer(null);
  if (button) setAttribute(button, 'aria-busy', true);
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

// Send the request that the action of a refusal names.
export const nextStep = action =>
  perform(find('[data-answer] [data-key=act]'), { what: `${action.label}:`, done: `${action.label}: begun` }, () =>
    call(action.method, action.path, { body: action.body }));
