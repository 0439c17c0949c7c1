// What the three pages of the settings share: they are read, shown, and kept true; what a press was answered.
import { element, find, findAll, icon, replace, setAttribute } from '../frame/dom.js';
import { onEvent, onGap, onState } from '../frame/events.js';
import { afterAMoment, goLive, isAway, isRead, showExpiring, skeleton, startFrame } from '../frame/frame.js';
import { countDown, refused } from '../frame/notices.js';

const page = { read: null, show: null, failed: '', isShown: false, reading: null, wanted: false, soon: null, stop: () => {} };

// Begin a page, whose content is in #screen. `read({ background })` reads what it shows, and `show(session)` shows it, after
// each reading; `rows` is the number of bones; `failed` says what could not be done; `wants(event)` whether an event
// changes what is shown.
export async function startSettings({ read, show, failed, rows = 4, wants = () => false }) {
  Object.assign(page, { read, show, failed, rows });
  onEvent(event => { if (page.isShown && wants(event)) refreshSoon(); });
  onGap(() => { if (page.isShown) refreshSoon(); });
  onState(showWhatWaits);
  page.session = await startFrame({ refresh: () => (page.isShown ? refresh() : begin()) });
  countOnTab(page.session.attention.tokens_expiring);
  await begin();
  goLive();
}

async function begin() {
  page.stop();
  const ready = afterAMoment(() => { if (!page.isShown) find('#screen').replaceChildren(bones()); });
  try {
    await page.read({ background: page.isShown });
    ready();
    showAll();
  } catch (error) {
    ready();
    if (error.status !== 401) showError(error);
  }
}

function showAll() {
  isRead();
  if (!page.isShown) find('#screen').replaceChildren();
  page.isShown = true;
  page.show(page.session);
  showWhatWaits();
}

// Read anew and show it; calls that come meanwhile are one more reading.
export async function refresh() {
  if (page.reading) { page.wanted = true; return page.reading; }
  page.reading = (async () => {
    do {
      page.wanted = false;
      try {
        await page.read({ background: true });
        showAll();
      } catch { /* what is shown stays, and the banner says from when it is */ }
    } while (page.wanted);
  })();
  await page.reading;
  page.reading = null;
}

export function refreshSoon() {
  clearTimeout(page.soon);
  page.soon = setTimeout(refresh, 100);
}

const shownIn = new WeakMap();

// Show a record in its place, unless it is there already: a press on what is replaced would be lost.
export function showIn(place, record, contentOf) {
  const says = JSON.stringify(record);
  if (shownIn.get(place) === says) return false;
  shownIn.set(place, says);
  replace(place, ...contentOf(record));
  return true;
}

// The session may have been replaced by another.
export function setSession(session) { page.session = { ...page.session, ...session }; }

function bones() {
  const row = () => element('div', { class: 'row' }, skeleton('3', '2', '3'));
  return element('section', { class: 'panel', 'aria-busy': 'true', 'aria-label': 'Loading settings' },
    element('header', {}, skeleton('2')), element('div', { class: 'body stack-4' }, Array.from({ length: page.rows }, row)));
}

function showError(error) {
  const notice = refused(error, { what: page.failed, retry: error.retryable ? begin : null, answers: false });
  find('#screen').replaceChildren(notice);
  const counter = find('[data-countdown]', notice);
  if (counter) page.stop = countDown(counter, error.retryAfter ?? 4, begin);
}

// Buttons that ask the service wait while it is away; the banner says why.
function showWhatWaits() {
  for (const button of findAll('#screen [data-asks]')) setAttribute(button, 'aria-disabled', isAway() ? 'true' : null);
}

// The tokens that expire soon, on the tab and in the navigation.
export function countOnTab(number) {
  showExpiring(number);
  const tab = find('[data-tab-of=settings_tokens]');
  find('.count', tab)?.remove();
  if (number) find('kbd', tab).before(element('span', { class: 'count warn' }, String(number), element('span', { class: 'vh' }, ` ${number === 1 ? 'expires' : 'expire'} within seven days`)));
}

// ---- what a press was answered, below the tabs ----

export function answer(notice) {
  const box = find('[data-answer]');
  box.replaceChildren(...(notice ? [notice] : []));
  box.hidden = notice === null;
  if (notice) { notice.focus(); notice.scrollIntoView({ block: 'nearest' }); }
}

export function announce(text) { find('[data-said]').textContent = text; }

// Send what a button does: it is busy meanwhile. True when it was done; a refusal is given to `refuse`, or shown below the tabs.
export async function deed(button, what, request, refuse = null) {
  if (isAway() || button.getAttribute('aria-busy') === 'true') return false;
  answer(null);
  setAttribute(button, 'aria-busy', 'true');
  try {
    await request();
    return true;
  } catch (error) {
    if (error.status === 401) refreshSoon();
    else if (!refuse?.(error)) answer(refused(error, { what, dismiss: () => answer(null) }));
    return false;
  } finally {
    setAttribute(button, 'aria-busy', null);
  }
}

// ---- fields ----

// A field: its label, the control, whose name is the API's, and a word of help below.
export function field(label, control, { help = '', around = control } = {}) {
  const id = `${control.id}-h`;
  if (help) { control.dataset.help = id; control.setAttribute('aria-describedby', id); }
  return element('div', { class: 'field' }, element('label', { for: control.id }, label), around, help && element('span', { class: 'help', id }, help));
}

// What is wrong with a field, below it; an empty text takes it away.
export function fieldError(control, text) {
  const id = `${control.id}-e`;
  find(`#${id}`)?.remove();
  setAttribute(control, 'aria-invalid', text ? 'true' : null);
  setAttribute(control, 'aria-describedby', [text && id, control.dataset.help].filter(Boolean).join(' ') || null);
  if (text) (find(':scope > .help', control.closest('.field')) ?? control.closest('.field').lastChild).before(element('span', { class: 'field-error', id }, icon('warning'), element('span', {}, text)));
}

// What the API says of fields, each beside its own, and the focus on the first; false when it says nothing of them.
export function fieldErrors(form, fields) {
  const controls = findAll('[name]', form);
  for (const control of controls) fieldError(control, fields.find(({ field: name }) => name === control.name)?.message ?? '');
  const first = controls.find(control => control.getAttribute('aria-invalid'));
  first?.focus();
  return first !== undefined;
}

// A day, exact in its title.
export function day(iso) {
  const date = new Date(iso);
  const isThisYear = date.getFullYear() === new Date().getFullYear();
  const text = date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: isThisYear ? undefined : 'numeric' });
  return element('time', { datetime: date.toISOString(), title: `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC` }, text);
}
