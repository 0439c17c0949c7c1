// What every screen of the administration is: for administrators, read, shown, and kept true.
import { command, element, find, setAttribute } from '../frame/dom.js';
import { onEvent, onGap, onState } from '../frame/events.js';
import { afterAMoment, goLive, isRead, startFrame } from '../frame/frame.js';
import { countDown, refused } from '../frame/notices.js';
import { quoted } from '../frame/words.js';

const page = { me: '', read: null, show: null, failed: '', isShown: false, reading: null, wanted: false, soon: null, stop: () => {} };

// Begin a screen, whose content is in #screen. `read({ background })` reads all that it shows, and `show()`
// shows it: after each reading, and when the service goes away and comes back. `loading()` gives the bones;
// `failed` is what could not be done, as a sentence; `wants(event)` says whether an event changes what is shown.
// Others than administrators are told so, and nothing is asked for them. Resolves to the session, once it is shown.
export async function startAdmin({ read, show, loading, failed, wants = () => false }) {
  Object.assign(page, { read, show, failed });
  onEvent(event => { if (page.isShown && wants(event)) refreshSoon(); });
  onGap(() => { if (page.isShown) refreshSoon(); });
  onState(() => { if (page.isShown) show(); });
  const found = await startFrame({ refresh: () => (page.isShown ? refresh() : begin(loading)) });
  page.me = found.user.name;
  if (!found.user.superuser) {
    showNoPermission(found.user.name);
    return new Promise(() => {});
  }
  await begin(loading);
  goLive();
  return found;
}

async function begin(loading) {
  page.stop();
  const ready = afterAMoment(() => { if (!page.isShown) find('#screen').replaceChildren(loading()); });
  try {
    await page.read({ background: false });
    ready();
    shown();
  } catch (error) {
    ready();
    if (error.status !== 401) showError(error, () => begin(loading));
  }
}

function shown() {
  isRead();
  if (!find('#screen')) { location.reload(); return; } // an administrator again
  if (!page.isShown) find('#screen').replaceChildren();
  page.isShown = true;
  page.show();
}

// Who is signed in.
export const me = () => page.me;

// Whether there is something to work on: it was read, and for an administrator.
export const isShown = () => page.isShown;

// Read anew and show it; calls that come meanwhile are one more reading.
export async function refresh() {
  if (page.reading) { page.wanted = true; return page.reading; }
  page.reading = (async () => {
    do {
      page.wanted = false;
      try {
        await page.read({ background: true });
        shown();
      } catch (error) {
        if (error.status === 403) showError(error, null);
      }
    } while (page.wanted);
  })();
  await page.reading;
  page.reading = null;
}

export function refreshSoon() {
  clearTimeout(page.soon);
  page.soon = setTimeout(refresh, 100);
}

function showError(error, retry) {
  if (error.code === 'admin_only') { showNoPermission(''); return; }
  if (find('.lede .skel')) find('.lede').replaceChildren();
  const notice = refused(error, { what: page.failed, retry: error.retryable ? retry : null, answers: false });
  find('#screen').replaceChildren(notice);
  const counter = find('[data-countdown]', notice);
  if (counter) page.stop = countDown(counter, error.retryAfter ?? 4, retry);
}

// The one place for who is no administrator, or is none any more. The API refuses anyway.
function showNoPermission(name) {
  page.isShown = false;
  find('#main').replaceChildren(element('section', { class: 'empty dash', 'data-no-permission': true },
    element('h1', {}, 'For administrators'),
    element('p', {}, name ? ['The account ', element('span', { class: 'mono' }, name), ' is none.'] : 'This account is none any more.', ' Administrators are made on the host, by root:'),
    command(`sudo svc admin edit-user ${name ? quoted(name) : 'NAME'} --superuser`),
    element('a', { class: 'btn', href: '/workspaces', 'data-cmd': 'svc ws list' }, 'Workspaces')));
}

// ---- what a press was answered, in [data-answer] above the list ----

export function answer(notice) {
  const box = find('[data-answer]');
  if (!box) return;
  box.replaceChildren(...(notice ? [notice] : []));
  box.hidden = notice === null;
  if (notice) { notice.focus(); notice.scrollIntoView({ block: 'nearest' }); }
}

export function announce(text) { find('[data-said]').textContent = text; }

// Send what a button does: the button is busy meanwhile, and a refusal is answered. True when it was done.
export async function deed(button, what, done, request) {
  if (button?.getAttribute('aria-busy') === 'true') return false;
  answer(null);
  if (button) setAttribute(button, 'aria-busy', 'true');
  try {
    await request();
    announce(done);
    return true;
  } catch (error) {
    if (error.status !== 401) answer(refused(error, { what, dismiss: () => answer(null) }));
    return false;
  } finally {
    if (button) setAttribute(button, 'aria-busy', null);
    refreshSoon();
  }
}
