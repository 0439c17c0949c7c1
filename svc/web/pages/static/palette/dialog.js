// Go to or run: a combobox over what there is and what can be done. The focus stays in the field.
import { all, call, outcomes } from '../frame/api.js';
import { hasSingleKeys } from '../frame/choices.js';
import { commandText } from '../frame/commands.js';
import { element, find, findAll, icon, setAttribute } from '../frame/dom.js';
import { onEvent, onGap, stateOfStream } from '../frame/events.js';
import { ask } from '../frame/asking.js';
import { isOffline } from '../frame/frame.js';
import { toast } from '../frame/foot.js';
import { refused } from '../frame/notices.js';
import { ACTIONS, QUESTIONS } from '../parts/workspace_actions.js';
import { entriesOf, matching } from './entries.js';

const AT_FIRST = { Workspaces: 6, Actions: 6, Templates: 4, Images: 0, Screens: 20 }; // before anything is typed
const MOST = 20; // of one group
const NEWS = ['workspace.', 'template.', 'image.', 'gpu.', 'operation.finished'];

const known = { workspaces: [], templates: [], images: [] };
let isStale = true, failure = null, reading = null;
let found = [], chosen = null, dialog = null;
let hasChosen = false; // by arrows or the mouse: what comes meanwhile does not change it

export function open() {
  dialog ??= build();
  const field = find('input', dialog);
  field.value = '';
  dialog.showModal();
  field.focus();
  if (isStale || stateOfStream().name !== 'live') read();
  fill({ anew: true });
}

function build() {
  const field = element('input', {
    type: 'text',
    role: 'combobox',
    'aria-expanded': 'true',
    'aria-controls': 'palette-list',
    'aria-autocomplete': 'list',
    spellcheck: 'false',
    autocomplete: 'off',
    'aria-label': 'Workspaces, templates, screens and actions',
    placeholder: 'Workspaces, templates, screens, actions',
    on: { input: () => fill({ anew: true }), keydown: step },
  });
  const box = element('dialog.palette', { id: 'palette', 'aria-label': 'Go to or run', click: event => {
    if (event.target === box) box.close();
  } }, element('div.find', icon('search'), field, element('kbd', 'Esc')),
    element('div', { role: 'listbox', id: 'palette-list', 'aria-label': 'Found', tabindex: '-1' }),
    element('p.body.muted.small', { 'data-note': true, hidden: true }),
    element('div.foot', element('span.cmdline', { 'data-palette-cmd': true }), element('kbd', '↑↓'),
      element('span', 'choose'), element('kbd', 'Enter'), element('span', 'run')),
    element('div.vh', { role: 'status' }));
  document.body.append(box);
  return box;
}

// ---- what there is ----

async function read({ background = false } = {}) {
  if (reading) return reading;
  isStale = false;
  reading = outcomes([all('/api/workspaces?sort=name', { background }), all('/api/templates?sort=name', { background }),
    all('/api/images', { background })]);
  const answers = await reading;
  reading = null;
  Object.keys(known).forEach((name, at) => {
    known[name] = answers[at].value ?? known[name];
  });
  // Root has no workspaces and no images: what is refused for good is not there.
  failure = answers.map(answer => answer.error).find(error => error && ![401, 403].includes(error.status)) ?? null;
  if (failure) isStale = true;
  if (dialog.open) fill();
}

let soon = null;
function news() {
  isStale = true;
  clearTimeout(soon);
  soon = setTimeout(() => {
    if (dialog?.open) read({ background: true });
  }, 200);
}

onEvent(event => {
  if (NEWS.some(start => event.type.startsWith(start))) news();
});
onGap(news);

// ---- showing ----

// The first that is found is chosen, until the person has chosen another; `anew`: something was typed.
function fill({ anew = false } = {}) {
  const text = find('input', dialog).value;
  const groups = matching(entriesOf(known), text).map(({ group, entries }) => ({ group,
    entries: text.trim() ? entries.slice(0, MOST) : atFirst(group, entries), total: entries.length })
  );
  found = groups.flatMap(({ entries }) => entries);
  const list = find('#palette-list', dialog);
  list.replaceChildren(...groups.filter(({ entries }) => entries.length > 0).map(groupOf));
  list.hidden = found.length === 0;
  note(text, groups);
  if (anew) hasChosen = false;
  const same = hasChosen && found.find(entry => entry.key === chosen.key);
  choose(same || (found[0] ?? null));
}

// Before anything is typed: of actions the nearest.
function atFirst(group, entries) {
  const isNear = entry =>
    !entry.isLater
    && (entry.path === '/new' || ['terminal', 'start', 'stop', 'keep'].includes(entry.key.split(' ')[0]));
  const visible = group === 'Actions' ? entries.filter(isNear) : entries;
  return visible.slice(0, AT_FIRST[group]);
}

function note(text, groups) {
  const cut = groups.some(({ entries, total }) => text.trim() && total > entries.length);
  const texts = found.length === 0
    ? reading ? 'Reading what there is…' : `Nothing here is called ${text.trim()}.`
    : failure
    ? `Not all could be read: ${failure.message}`
    : cut
    ? 'There are more; type on.'
    : '';
  const place = find('[data-note]', dialog);
  place.textContent = texts;
  place.hidden = texts === '';
  find('[role=status]', dialog).textContent = found.length ? `${found.length} found` : texts;
}

function groupOf({ group, entries }) {
  return element('div', { role: 'group', 'aria-label': group }, element('div', { 'aria-hidden': true }, group),
    entries.map(optionOf));
}

function optionOf(entry) {
  const isNotNow = entry.action && isOffline();
  const sub = isNotNow ? 'not now: the service does not answer' : entry.sub;
  const keys = entry.keys && hasSingleKeys()
    && element('span.push', entry.keys.split(' ').map(key => element('kbd', key)));
  return element('div', {
    role: 'option',
    id: idOf(entry),
    'aria-selected': 'false',
    'aria-disabled': isNotNow,
    on: { mousemove: () => {
      if (chosen !== entry) {
        hasChosen = true;
        choose(entry, { scrolls: false });
      }
    }, click: run },
  }, element('span', { class: entry.isName ? 'name clip' : 'clip', title: entry.title }, entry.title),
    sub && element('span.sub', sub), keys);
}

const idOf = entry => `p-${found.indexOf(entry)}`;

function choose(entry, { scrolls = true } = {}) {
  chosen = entry;
  for (const option of findAll('[role=option]', dialog))
    setAttribute(option, 'aria-selected', String(entry !== null && option.id === idOf(entry)));
  setAttribute(find('input', dialog), 'aria-activedescendant', entry && idOf(entry));
  if (scrolls && entry) showWhole(entry);
  const cmd = commandText(entry?.cmd ?? '');
  const foot = find('[data-palette-cmd]', dialog);
  foot.textContent = cmd ? `$ ${cmd}` : entry ? 'in this browser only' : '';
  foot.title = cmd;
}

// The first of all with the heading above it.
function showWhole(entry) {
  if (entry === found[0]) find('#palette-list', dialog).scrollTop = 0;
  else find(`#${idOf(entry)}`, dialog).scrollIntoView({ block: 'nearest' });
}

function step(event) {
  const at = found.indexOf(chosen), last = found.length - 1;
  const to =
    { ArrowDown: at === last ? 0 : at + 1, ArrowUp: at <= 0 ? last : at - 1, PageDown: at + 8, PageUp: at - 8, Home: 0,
      End: last }[event.key];
  if (event.key === 'Enter') {
    event.preventDefault();
    run();
  } else if (to !== undefined && found.length && !event.shiftKey) {
    event.preventDefault();
    hasChosen = true;
    choose(found[Math.max(0, Math.min(last, to))]);
  }
}

// ---- doing ----

async function run() {
  const entry = chosen;
  if (!entry) return;
  if (entry.action && isOffline()) {
    find('[role=status]', dialog).textContent = 'Not now: the service does not answer.';
    return;
  }
  dialog.close();
  if (entry.path) {
    if (entry.path !== location.pathname + location.search) location.assign(entry.path);
  } else if (entry.action) {
    await act(entry);
  } else {
    entry.run();
  }
}

async function act({ action, workspace }) {
  const { id, name } = workspace;
  if (QUESTIONS[action] && !await ask(QUESTIONS[action](workspace))) return;
  const { doing, done, failed, send } = ACTIONS[action];
  announce(`${name}: ${doing}`);
  try {
    await send(`/api/workspaces/${encodeURIComponent(id)}`);
    announce(`${name}: ${done}`);
  } catch (error) {
    if (error.status !== 401) showRefused(error, `${name} ${failed}.`);
  }
  news();
}

function announce(text) {
  toast(text); // in a polite region
}

// Over the page, for whatever screen it is: its own rows follow the events.
function showRefused(error, what) {
  const close = element('button.btn', { type: 'submit', autofocus: true }, 'Close');
  const box = element('dialog', { 'aria-label': what, on: { close: () => box.remove() } },
    element('div.in', refused(error, { what, act: action => actThen(action, box, what) }),
      element('form.ends', { method: 'dialog' }, close)));
  document.body.append(box);
  box.showModal();
  close.focus();
}

// The button of a refusal: what its hint says.
async function actThen(action, box, what) {
  const button = find('[data-key=act]', box);
  if (button.getAttribute('aria-busy')) return;
  setAttribute(button, 'aria-busy', true);
  try {
    await call(action.method, action.path, { body: action.body });
    box.close();
    announce(`${action.label}: begun`);
  } catch (error) {
    box.close();
    if (error.status !== 401) showRefused(error, what);
  }
}
