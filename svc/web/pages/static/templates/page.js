// What the screens of templates have in common: read, shown, kept true; buttons, and what a press was answered.
import { element, find, findAll, setAttribute } from '../frame/dom.js';
import { onEvent, onGap, onState } from '../frame/events.js';
import { afterAMoment, goLive, isAway, isRead, startFrame } from '../frame/frame.js';
import { countDown, refused } from '../frame/notices.js';

const page = { read: null, show: null, failed: '', gone: null, unready: () => {}, isShown: false, reading: null, wanted: false, soon: null, stop: () => {} };

// Begin a screen, whose content is in #screen. `read({ background })` reads all that it shows, `show()` shows it;
// `loading()` gives the bones, `gone(error)` what is shown for a 404, `unready()` puts away what stands
// for what is to come, `wants(event)` says which events change it.
// `may(session)` gives null, or what is shown instead for who may not see it. Resolves to the session.
export async function startPage({ read, show, loading, failed, gone = null, unready = () => {}, wants = () => false, may = null }) {
  Object.assign(page, { read, show, failed, gone, unready });
  onEvent(event => { if (page.isShown && wants(event)) refreshSoon(); });
  onGap(() => { if (page.isShown) refreshSoon(); });
  onState(() => { if (page.isShown) holdButtons(); });
  const frame = startFrame({ refresh: () => (page.isShown ? refresh() : begin(loading)) });
  if (may) {
    const instead = may(await frame);
    if (instead) { find('#screen').replaceChildren(instead); return new Promise(() => {}); }
  }
  await begin(loading);
  const session = await frame;
  goLive();
  return session;
}

async function begin(loading) {
  page.stop();
  const ready = afterAMoment(() => { if (!page.isShown) find('#screen').replaceChildren(loading()); });
  try {
    await page.read({ background: false });
    ready();
    showRead();
  } catch (error) {
    ready();
    if (error.status !== 401) showError(error, () => begin(loading));
  }
}

function showRead() {
  isRead();
  if (!page.isShown) find('#screen').replaceChildren();
  page.isShown = true;
  showNow();
}

// Read anew and show it; calls that come meanwhile are one more reading.
export async function refresh() {
  if (page.reading) { page.wanted = true; return page.reading; }
  page.reading = (async () => {
    do {
      page.wanted = false;
      try {
        await page.read({ background: true });
        showRead();
      } catch (error) {
        if (error.status === 403 || error.status === 404) showError(error, null);
        else if (!error.status && !('retryable' in error)) throw error;
      }
    } while (page.wanted);
  })();
  try { await page.reading; } finally { page.reading = null; }
}

export function refreshSoon() {
  clearTimeout(page.soon);
  page.soon = setTimeout(refresh, 100);
}

function showError(error, retry) {
  page.isShown = false;
  page.unready();
  if (error.status === 404 && page.gone) { find('#screen').replaceChildren(page.gone(error)); return; }
  const notice = refused(error, { what: page.failed, retry: error.retryable ? retry : null, answers: false });
  find('#screen').replaceChildren(notice);
  const counter = find('[data-countdown]', notice);
  if (counter) page.stop = countDown(counter, error.retryAfter ?? 4, retry);
}

// While a button is held down nothing is replaced: the press would be lost.
let isHeld = false, isOwed = false;
document.addEventListener('pointerdown', () => { isHeld = true; });
for (const name of ['pointerup', 'pointercancel']) document.addEventListener(name, () => setTimeout(() => {
  isHeld = false;
  if (isOwed) showNow();
}));

document.addEventListener('click', () => { isHeld = false; }, true); // it has its target by now

export function showNow() {
  isOwed = isHeld;
  if (isHeld || !page.isShown) return;
  page.show();
  holdButtons();
}

// Put content into a place, unless it is the same: a menu stays open, the focus where it is.
export function put(place, ...content) {
  const next = place.cloneNode(false);
  next.append(...content.flat().filter(Boolean));
  const open = findAll('details[open]', place).map(menu => menu.dataset.key);
  for (const key of open) find(`details[data-key="${CSS.escape(key)}"]`, next)?.setAttribute('open', '');
  if (next.isEqualNode(place)) return;
  const key = place.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  place.replaceChildren(...next.childNodes);
  if (key) find(`[data-key="${CSS.escape(key)}"]`, place)?.focus();
}

// ---- buttons ----

// A button and its command; `why` says why it does nothing now.
export function pressable(content, { cmd, key, run, kind = '', why = '', label = null }) {
  const button = element('button', {
    class: `btn ${kind}`.trim(), type: 'button', 'data-cmd': cmd, 'data-key': key, 'aria-label': label, 'data-deed': why ? null : true,
    'aria-disabled': why || isAway() ? 'true' : null, 'aria-describedby': why ? `why-${key}` : null,
    on: { click: () => { if (!why && !isAway()) run(button); } },
  }, ...[content].flat());
  return why ? element('span', { class: 'row' }, button, element('span', { class: 'muted small', id: `why-${key}` }, why)) : button;
}

function holdButtons() {
  for (const button of findAll('[data-deed]')) setAttribute(button, 'aria-disabled', isAway() ? 'true' : null);
}

// ---- what a press was answered ----

export function answer(notice) {
  const box = find('[data-answer]');
  box.replaceChildren(...(notice ? [notice] : []));
  box.hidden = notice === null;
  if (notice) { notice.focus(); notice.scrollIntoView({ block: 'nearest' }); }
}

export function announce(text) { find('[data-said]').textContent = text; }

// Send what a button does: it is busy meanwhile, and a refusal is answered with its next step. Resolves to
// [what came], or to null where it was refused. `act` does what the refusal's own button says.
export async function deed(button, { what, done, act = null }, request) {
  if (isAway() || button?.getAttribute('aria-busy') === 'true') return null;
  answer(null);
  if (button) setAttribute(button, 'aria-busy', 'true');
  try {
    const came = await request();
    if (done) announce(done);
    return [came];
  } catch (error) {
    if (error.status === undefined && !('retryable' in error)) throw error;
    if (error.status !== 401) answer(refused(error, { what, act, dismiss: () => answer(null) }));
    return null;
  } finally {
    if (button) setAttribute(button, 'aria-busy', null);
    refreshSoon();
  }
}
