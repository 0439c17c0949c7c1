// The frame of every screen: account, banner, menus, keys, end of the session.
import { call, onSignedOut, onUnreachable, session } from './api.js';
import { closestTo, element, find, findAll, rowsIn, setAttribute, stateMark } from './dom.js';
import { again, beginAfter, follow, onState, stateOfStream } from './events.js';
import { startKeys } from './keys.js';
import { startFoot } from './foot.js';
import { askByPart, refused } from './notices.js';
import { refreshTimes, time } from './format.js';

const OFFLINE = ['restarting', 'offline'];

/** @type {Api.SessionUser} */
let user = null;
let readAt = new Date(), bannerTimer = null, isRenewing = false;

export const hostName = () => location.hostname.replace(/^\[|\]$/g, '');
const shortName = () => /^[\d.]+$|:/.test(hostName()) ? hostName() : hostName().split('.')[0];

// True while the service does not answer: buttons are disabled then, and stay in place.
export const isOffline = () => OFFLINE.includes(stateOfStream().name);

// Note the time of the last successful reading.
export function isRead() {
  readAt = new Date();
}

/**
 * Fill the frame and begin. Resolves to the session, or never.
 * @param {{refresh: () => any, later: Record<'palette' | 'signIn' | 'meant', () => Promise<any>>}} screen
 *   `refresh` reads all of it anew; `later` loads the parts that it has as files of their own
 */
export async function startFrame({ refresh, later }) {
  for (const node of findAll('[data-host]')) node.textContent = shortName();
  document.title = `${document.title} · ${shortName()}`;
  startFoot();
  startMenus();
  startKeys(later.palette);
  askByPart(later.meant);
  signingIn = later.signIn;
  if (!session.secret) return leave();
  onSignedOut(error => {
    if (!isRenewing) user ? showSignedOut(error, refresh) : leave();
  });
  onUnreachable(() => showBanner(stateOfStream()));
  onState(state => showBanner(state));
  watchPerson(refresh);
  const found = await readSession();
  beginAfter(found.events_after);
  fillUser(found);
  setInterval(() => {
    if (!document.hidden) refreshTimes();
  }, 15_000);
  return found;
}

// Follow the events; called after the first paint.
export function goLive() {
  follow();
  signingIn().catch(() => {}); // asked for again when it is wanted
}

async function readSession() {
  for (;;) {
    const { secret } = session;
    try {
      return await call('GET', '/api/auth/session');
    } catch (error) {
      // another tab has begun a new one
      if (error.status === 401 && session.secret && session.secret !== secret) continue;
      if (error.status === 401) await new Promise(() => {});
      if (error.status === 403) {
        showRefused(error);
        await new Promise(() => {});
      }
      showBanner({ name: 'offline', nextAt: Date.now() + 4000 });
      await new Promise(resolve => setTimeout(resolve, 4000));
      find('.banner')?.remove();
    }
  }
}

// The screen's own nodes are hidden, not removed: it may still be filling them.
function showRefused(error) {
  const main = find('#main');
  for (const node of rowsIn(main)) node.hidden = true;
  main.prepend(element('div.head', element('h1', document.title.split(' · ')[0])),
    refused(error, { what: 'This account cannot be used.' }));
}

function leave() {
  session.end();
  const next = location.pathname + location.search;
  location.replace(next === '/workspaces' ? '/sign-in' : `/sign-in?next=${encodeURIComponent(next)}`);
  return new Promise(() => {});
}

function fillUser({ user: found, attention }) {
  user = found;
  for (const node of findAll('[data-user]')) node.textContent = user.name;
  showPerson(user.display_name);
  for (const node of findAll('[data-sign-out]')) node.addEventListener('click', signOut);
  for (const node of findAll('[data-admin]')) node.hidden = !user.superuser;
  showExpiring(attention.tokens_expiring);
  if (!user.superuser) return;
  badge('admin-templates', attention.reviews_waiting,
    number => `${number === 1 ? 'template waits' : 'templates wait'} for a review`);
  badge('admin-gpus', attention.gpus_lost, number => `running ${number === 1 ? 'workspace' : 'workspaces'} lost a GPU`);
}

// Show the full name beside the account's name.
export function showPerson(name) {
  for (const node of findAll('[data-person]')) {
    node.textContent = node.title = name;
    node.hidden = name === '';
  }
}

// Show the number of tokens that expire within seven days, at Settings.
export function showExpiring(number) {
  badge('settings', number, () => `${number === 1 ? 'token expires' : 'tokens expire'} within seven days`);
}

// A badge of the navigation: a number with a text for screen readers; none for zero.
function badge(place, number, textFor) {
  const text = ` ${textFor(number)}`;
  for (const node of findAll(`[data-place="${place}"]`)) {
    find('.count', node)?.remove();
    if (number)
      node.append(
        element('span.count.warn', { title: `${number}${text}` }, String(number), element('span.vh', text))
      );
  }
}

async function signOut(event) {
  setAttribute(event.currentTarget, 'aria-busy', true);
  try {
    await call('POST', '/api/auth/logout', { body: {} });
  } catch { /* ended already, or away: this browser forgets its half of the session */ }
  session.end();
  location.assign('/sign-in');
}

// ---- the session ended: sign in over the page; typed text is kept ----

// Loaded while there is a session: when it is used, the service may be another release.
let signingIn = null;

async function showSignedOut(error, refresh) {
  session.end();
  const part = await signingIn().catch(leave);
  if (session.secret || find('#signed-out')) return;
  part.askToSignIn({ name: user.name, reason: error ? 'Your session has ended.' : 'You signed out in another tab.',
    done: login => {
      if (login.user.name === user.name) goOn(refresh);
      else location.reload();
    } });
}

// Another tab has begun a session: continue with it if it is the same account's, else reload.
async function signedInElsewhere(refresh) {
  const found = await call('GET', '/api/auth/session', { background: true }).catch(() => null);
  if (found && found.user.name === user?.name) goOn(refresh);
  else location.reload();
}

function goOn(refresh) {
  const dialog = find('dialog#signed-out');
  dialog?.close();
  dialog?.remove();
  follow();
  refresh();
}

// Replace the session; refusals of the old one in between are ignored.
export async function renewSession(end, begin) {
  isRenewing = true;
  try {
    await end();
    session.begin((await begin()).session_secret);
    follow();
  } finally {
    isRenewing = false;
  }
}

function watchPerson(refresh) {
  window.addEventListener('storage', event => {
    if (event.key !== 'svc.session' || isRenewing) return;
    if (event.newValue === null) showSignedOut(null, refresh);
    else signedInElsewhere(refresh);
  });
  const back = () => {
    if (document.hidden || !session.secret) return;
    refreshTimes();
    if (isOffline() || Date.now() - readAt.getTime() > 60_000) refresh();
    again();
  };
  document.addEventListener('visibilitychange', back);
  window.addEventListener('focus', back);
  window.addEventListener('online', back);
}

// ---- the banner: says that the content may be out of date ----

function showBanner(state) {
  clearInterval(bannerTimer);
  const place = find('.main');
  let banner = find('div.banner');
  if (!OFFLINE.includes(state.name)) {
    banner?.remove();
    return;
  }
  const restarts = state.name === 'restarting';
  if (!banner) {
    banner = element('div', { role: 'status' });
    place.prepend(banner);
  }
  banner.className = restarts ? 'banner' : 'banner warn';
  const next = element('span.push.num', { 'aria-hidden': true });
  const text = restarts
    ? 'Workspaces run on; buttons work again in a moment.'
    : 'Workspaces run on without it; buttons work again when it answers.';
  banner.replaceChildren(
    stateMark(restarts ? 'busy' : 'warn',
      restarts ? 'The service is restarting' : navigator.onLine ? `${shortName()} does not answer` : 'No network'),
    element('span', 'What you see is from ', time(readAt.toISOString(), 'clock'), `. ${text}`),
    next
  );
  const tick = () => {
    const left = Math.ceil(((state.nextAt ?? 0) - Date.now()) / 1000);
    next.textContent = left > 0 ? `trying again in ${left} s` : 'trying again';
  };
  tick();
  bannerTimer = setInterval(tick, 500);
}

// ---- menus ----

function startMenus() {
  document.addEventListener('click', event => {
    const inside = closestTo(event, 'details.menu');
    for (const menu of findAll('details.menu[open]')) if (menu !== inside || closestTo(event, 'li')) menu.open = false;
    const opener = closestTo(event, '[data-open]');
    if (opener) find(`dialog#${opener.dataset.open}`)?.showModal();
  });
  document.addEventListener('focusin', event => { // it would lie over what has the focus now
    for (const menu of findAll('details.menu[open]')) if (menu !== closestTo(event, 'details.menu')) menu.open = false;
  });
  document.addEventListener('keydown', event => {
    const menu = closestTo(event, 'details.menu[open]');
    if (!menu) return;
    const items = findAll('li > button, li > a', menu);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && items.length) {
      event.preventDefault();
      const at = items.findIndex(item => item === document.activeElement);
      items[(at + step + items.length + Number(at < 0 && step < 0)) % items.length].focus();
    } else if (event.key === 'Escape') {
      menu.open = false;
      find('summary', menu).focus();
    }
  });
}

// ---- the skeleton of a screen, until the first answer ----

export const skeleton = (...widths) => widths.map(width => element('span', { class: `skel w${width}` }));

// A panel with so many rows, each with these widths.
export const panelSkeleton = (label, rows, widths = ['4']) =>
  element('section.panel', { 'aria-busy': true, 'aria-label': `Loading ${label}` }, element('header', skeleton('3')),
    element('div.body.stack-4', Array.from({ length: rows }, () =>
      element(widths.length > 1 ? 'div.row' : 'div', skeleton(...widths)))));
