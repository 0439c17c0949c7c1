// The shells of a workspace: one tab each, and the screen of the chosen one.
import { call } from '../frame/api.js';
import { element, find, findAll, setAttribute } from '../frame/dom.js';
import { onState } from '../frame/events.js';
import { ask } from '../frame/asking.js';
import { isOffline } from '../frame/frame.js';
import { setCommand, toast } from '../frame/foot.js';
import { answer, answerRefusal, refused } from '../frame/notices.js';
import { commandText } from '../frame/commands.js';
import { TERMINAL_OPEN } from '../generated/actions.js';
import { commandOf } from '../parts/workspace_actions.js';
import { startWorkspace, workspaceName } from '../workspace/head.js';
import { TerminalLink } from './terminal_link.js';
import { statusText } from './terminal_texts.js';
import { loadXterm, terminalView } from './terminal_view.js';
import { countDown, onColours } from './surroundings.js';

const READER = 'svc.terminal.reader';
const SLEPT_MS = 30_000;

const shells = [];
const terminal = { record: /** @type {Api.Workspace} */ (null), chosen: null, max: 8, isBegun: false, isOpening: false,
  next: 1, readsAloud: localStorage.getItem(READER) === 'on' };

const pathNow = () => `/api/workspaces/${encodeURIComponent(terminal.record?.id ?? workspaceName)}`;
const nameNow = () => terminal.record?.name ?? workspaceName;
const shellCommand = (...options) => [TERMINAL_OPEN, nameNow(), ...options];
const requested = () => new URLSearchParams(location.search).get('shell');
const runs = () => terminal.record.status === 'running';

const shellNow = () => terminal.chosen ? shellCommand('--attach', terminal.chosen.id) : shellCommand();

// ---- the list ----

// The shells that run; what the address names is shown also when it has ended.
async function readShells() {
  const { items, max } = await call('GET', `${pathNow()}/terminals`, { background: true });
  terminal.max = max;
  const visible = items.filter(item => item.state === 'running' || item.id === requested());
  visible.sort((a, b) => (a.opened_at < b.opened_at ? -1 : 1));
  for (const item of visible) if (!shells.some(shell => shell.id === item.id)) add(item);
}

/** @param {Api.Terminal} record */
function add(record, ticket = null) {
  const number = terminal.next++;
  const tab = element('button.sh', {
    role: 'tab',
    id: `tab-${number}`,
    'aria-selected': 'false',
    tabindex: '-1',
    'data-shell': record.id,
    cmd: shellCommand('--attach', record.id),
    on: { click: () => choose(shell, { focus: true }), keydown: event => pressTab(event, shell) },
  });
  const shell = { id: record.id, number, ticket, tab, record, title: record.title, view: null, link: null };
  shells.push(shell);
  find('[data-shells]').append(tab);
  nameTab(shell);
  return shell;
}

const labelOf = ({ title, record }) => title || (record.command ?? ['shell']).join(' ');

function nameTab(shell) {
  const text = labelOf(shell), end = shell.link?.status.name === 'ended' ? ', ended' : '';
  setAttribute(shell.tab, 'title', text);
  shell.tab.replaceChildren(`${shell.number} `, element('bdi.clip', text), end && element('span.vh', end));
  shell.tab.toggleAttribute('data-ended', end !== '');
}

// ---- choosing, opening, closing ----

function choose(shell, { focus = false } = {}) {
  terminal.chosen = shell;
  for (const other of shells) {
    setAttribute(other.tab, 'aria-selected', String(other === shell));
    setAttribute(other.tab, 'tabindex', other === shell ? '0' : '-1');
    if (other.view) other.view.node.hidden = other !== shell;
  }
  if (!shell.view) attachTo(shell);
  else shell.link.fit(shell.view.room());
  history.replaceState(history.state, '', `${location.pathname}?shell=${encodeURIComponent(shell.id)}`);
  setCommand(shellNow());
  showStatus();
  shell.tab.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  if (focus) shell.view.focus();
}

function attachTo(shell) {
  shell.view = terminalView({
    label: `Terminal ${shell.number}`,
    id: `screen-${shell.number}`,
    tab: shell.tab.id,
    readsAloud: terminal.readsAloud,
    typed: bytes => shell.link.type(bytes),
    leave: () => shell.tab.focus(),
    fits: room => shell.link.fit(room),
  });
  setAttribute(shell.tab, 'aria-controls', shell.view.node.id);
  find('[data-screens]').append(shell.view.node);
  shell.view.open();
  shell.view.resize(shell.view.room());
  shell.link = new TerminalLink({
    path: pathNow(),
    id: shell.id,
    ticket: shell.ticket,
    view: shell.view,
    size: () => shell.view.room(),
    changed: () => {
      nameTab(shell);
      if (terminal.chosen === shell) showStatus();
    },
    titled: title => {
      shell.title = title;
      nameTab(shell);
    },
  });
  if (shell.record.state === 'exited') shell.link.isNew = false;
  shell.ticket = null;
  shell.link.connect();
}

async function openAnother() {
  if (terminal.isOpening || isOffline() || isFull() || !runs()) return;
  terminal.isOpening = true;
  trouble(null);
  showButtons();
  const { cols, rows } = terminal.chosen?.view?.room() ?? { cols: 80, rows: 24 };
  try {
    const { ticket, ...record } = await call('POST', `${pathNow()}/terminals`, { body: { cols, rows } });
    choose(add(record, ticket), { focus: true });
  } catch (error) {
    if (error.status !== 401) trouble(refused(error, { what: 'No shell was opened.', dismiss: () => trouble(null) }));
  } finally {
    terminal.isOpening = false;
    showStatus();
  }
}

// In the room of the screen, where there is none: nothing moves.
function trouble(notice) {
  if (terminal.chosen) answer(notice);
  else find('[data-trouble]').replaceChildren(...(notice ? [notice] : []));
}

const isFull = () => shells.filter(shell => shell.link?.status.name !== 'ended').length >= terminal.max;

async function closeShell(shell) {
  if (isOffline()) return;
  const isEnded = shell.link?.status.name === 'ended';
  if (!isEnded) {
    const text = ['What runs in it ends; what it has left running on purpose goes on until the workspace stops.'];
    if (!await ask({ title: `Close ${shell.number} ${labelOf(shell)}?`, paragraphs: text, action: 'Close it',
      keep: 'Let it run', cmd: shellCommand('--close', shell.id) })) return;
    try {
      await call('DELETE', `${pathNow()}/terminals/${encodeURIComponent(shell.id)}`);
    } catch (error) {
      if (error.status === 401) return;
      if (error.status !== 404) {
        answerRefusal(error, `${labelOf(shell)} was not closed.`);
        return;
      }
    }
  }
  forget(shell);
}

function forget(shell) {
  const at = shells.indexOf(shell);
  shell.link?.leave();
  shell.view?.remove();
  shell.tab.remove();
  shells.splice(at, 1);
  const next = shells[Math.min(at, shells.length - 1)];
  if (next) {
    choose(next);
    next.tab.focus();
    return;
  }
  terminal.chosen = null;
  history.replaceState(history.state, '', location.pathname);
  setCommand(shellNow());
  showStatus();
  find('[data-another]').focus();
}

function pressTab(event, shell) {
  const at = shells.indexOf(shell), last = shells.length - 1;
  const to =
    { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
  if (to !== undefined) {
    choose(shells[to]);
    shells[to].tab.focus();
  } else if (event.key === 'Delete') closeShell(shell);
  else if (event.key === 'ArrowDown') shell.view.focus();
  else return;
  event.preventDefault();
}

// ---- what is said below it ----

let stopCounting = () => {};

function showStatus() {
  const shell = terminal.chosen;
  const text = statusText(shell, { runs: runs(), again: () => openAnother(), close: () => closeShell(shell),
    now: () => shell.link.now() });
  find('[data-screens]').toggleAttribute('data-dim',
    Boolean(shell?.link) && !['open', 'connecting', 'behind'].includes(shell.link.status.name));
  const place = find('[data-status]');
  if (place.dataset.text !== text.key) {
    place.dataset.text = text.key;
    place.replaceChildren(...text.content);
  }
  stopCounting();
  stopCounting = countDown(find('[data-in]'), shell?.link?.status.nextAt);
  const size = shell?.view?.size;
  find('[data-size]').textContent = size
    ? `${size.cols} × ${size.rows}${shell.link.isRuled ? ', the size of another window until you type' : ''}`
    : '';
  showButtons();
}

function showButtons() {
  const why = isFull() ? `${terminal.max} shells are open; close one first.` : !runs() ? 'It does not run.' : '';
  const button = find('[data-another]');
  setAttribute(button, 'aria-disabled', Boolean(why || isOffline()));
  setAttribute(button, 'aria-busy', terminal.isOpening);
  setAttribute(button, 'title', why || null);
  setAttribute(button, 'data-cmd', shellCommand());
  find('#another-why').textContent = why;
  for (const node of findAll('[data-needs-shell]'))
    setAttribute(node, 'aria-disabled', !terminal.chosen);
  setAttribute(find('[data-close]'), 'data-cmd', terminal.chosen && shellCommand('--close', terminal.chosen.id));
}

// ---- the page ----

async function begin() {
  terminal.isBegun = true;
  try {
    const [, ended] = await Promise.all([loadXterm(), readShells().then(() => requested())]);
    const found = shells.find(shell => shell.id === ended) ?? shells[0];
    if (found) choose(found, { focus: document.activeElement === document.body });
    else await openAnother();
  } catch (error) {
    terminal.isBegun = false;
    if (error.status !== 401)
      trouble(refused(error, { what: 'The shells could not be read.', retry: error.retryable
        ? () => {
          trouble(null);
          begin();
        }
        : null, answers: false }));
  }
}

/** @param {Api.Workspace} record */
function show(record) {
  terminal.record = record;
  if (!find('[data-terminal]')) {
    find('[data-own-command]').textContent = commandText(shellNow());
    return;
  } // the page says why
  find('[data-terminal]').hidden = !runs() && shells.length === 0;
  find('[data-not-running]').hidden = runs() || shells.length > 0;
  find('[data-not-running] h2').textContent = ['starting', 'creating'].includes(record.status)
    ? 'It starts; a shell opens then by itself'
    : 'It does not run';
  find('[data-not-running] code').textContent = commandText(commandOf('start', nameNow()));
  if (!terminal.isBegun && runs()) begin();
  else showStatus();
}

function startButtons() {
  find('[data-another]').addEventListener('click', openAnother);
  find('[data-close]').addEventListener('click', () => terminal.chosen && closeShell(terminal.chosen));
  find('[data-clear]').addEventListener('click', () => {
    terminal.chosen?.view.clear();
    terminal.chosen?.view.focus();
  });
  find('[data-copy-screen]').addEventListener('click', async () => {
    if (!terminal.chosen) return;
    try {
      await navigator.clipboard.writeText(terminal.chosen.view.text());
      toast('Copied');
    } catch {
      toast('The browser refused to copy; mark the text and press Ctrl Shift C');
    }
  });
  const reader = find('[data-reader]');
  setAttribute(reader, 'aria-pressed', String(terminal.readsAloud));
  reader.addEventListener('click', () => {
    terminal.readsAloud = !terminal.readsAloud;
    localStorage.setItem(READER, terminal.readsAloud ? 'on' : 'off');
    setAttribute(reader, 'aria-pressed', String(terminal.readsAloud));
    for (const shell of shells) shell.view?.readAloud(terminal.readsAloud);
  });
}

function watchSurroundings() {
  onColours(() => {
    for (const shell of shells) shell.view?.restyle();
  });
  const back = anew => {
    for (const shell of shells) shell.link?.now(anew);
  };
  onState(({ name }) => {
    if (name === 'live') back(false);
    if (terminal.record) showButtons();
  });
  window.addEventListener('online', () => back(true));
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && terminal.isBegun) {
      back(false);
      readShells().catch(() => {});
    }
  });
  // A computer that slept has connections that nobody has at the other end.
  let at = Date.now();
  setInterval(() => {
    const slept = Date.now() - at > SLEPT_MS;
    at = Date.now();
    if (slept) back(true);
  }, 5000);
}

if (find('[data-terminal]')) {
  startButtons();
  watchSurroundings();
}
await startWorkspace({ tab: 'terminal', show, command: shellNow });
