// The files screen: file roots, folders, a file's content, and uploads that go on while the person walks about.
import { call } from '../frame/api.js';
import { closestTo, code, element, find, findAll, icon, replace, setAttribute, empty } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { folderSkeleton, showFolder, unchoose } from './folder.js';
import { setCommand, toast } from '../frame/foot.js';
import {
  commandsFor,
  loadCommand,
  makeCommand,
  moveCommand,
  openCommand,
  removeCommand,
  uploadCommand,
} from './commands.js';
import { announce, answer, answerRefusal, refused, unread } from '../frame/notices.js';
import { openPage, refresh, refreshSoon, showNow, startPage } from '../screen/page.js';
import { apiOf, folderOf, pageOf, placeOf, readable, argument } from './paths.js';
import { byteSize, counted } from '../frame/format.js';
import { FS_ROOTS } from '../generated/actions.js';
import { spelledOut } from '../parts/unseen.js';

const LOCK_ICON = 'M3.5 7h9v7h-9zM5.5 7V4.5a2.5 2.5 0 0 1 5 0V7';
const REMOVE_ICON = 'M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.7 9h6.6l.7-9';
const LISTED = 10_000, WORK = 'work'; // the root that everybody has
const at = { root: '', path: '' }, known = { roots: null, limits: null, found: null };
let desk = null;
const screen = find('#screen');

// ---- reading ----

const rootNow = () => known.roots?.find(({ id }) => id === at.root);

async function read(options) {
  if (!known.roots || options.background) {
    const { items, limits } = await call('GET', '/api/fs/roots', options);
    Object.assign(known, { roots: items, limits });
  }
  at.root ||= known.roots[0]?.id ?? '';
  return call('GET', apiOf(at.root, 'list', at.path, `&limit=${LISTED}`), options);
}

function took(found) {
  known.found = known.found ? withRest(found, known.found) : found;
}

// The rest of a very large folder, when it is asked for.
async function readRest(event) {
  const { found } = known, button = event.currentTarget;
  if (button.getAttribute('aria-busy') === 'true') return; // pressed twice, a part would be there twice
  setAttribute(button, 'aria-busy', true);
  const rest = await call('GET', apiOf(at.root, 'list', at.path, `&limit=${LISTED}&offset=${found.next_offset}`)).catch(
    error => {
      answer(refused(error, {}));
      return null;
    }
  );
  setAttribute(button, 'aria-busy', null);
  if (!rest || known.found?.entry.path !== found.entry.path) return;
  known.found = { ...rest, items: [...known.found.items, ...rest.items] };
  showNow();
}

// ---- walking ----

function go(href, isBack = false) {
  if (!isBack) history.pushState(null, '', href);
  Object.assign(at, placeOf(location));
  answer(null);
  known.found = null;
  showPlace();
  openPage().then(() => {
    if (!isBack) scrollTo(0, 0);
  });
}

document.addEventListener('click', event => {
  const link = closestTo(event, 'a[data-go]');
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.getAttribute('href'));
  find('#main').focus({ preventScroll: true });
});
window.addEventListener('popstate', () => go('', true));

// ---- showing ----

const barred = () => {
  if (rootNow()?.read_only) return `${at.root} is read-only`;
  return isOffline() ? 'The service does not answer' : '';
};

function show({ isNew }) {
  showPlace();
  const { found } = known, { entry, items, total } = found, place = placeNow(),
    actHere = (kind, entries) => act(kind, entries, place);
  if (entry.type !== 'directory') {
    if (isNew)
      loaded('actions', ({ actions }) => {
        if (known.found === found) screen.replaceChildren(actions.preview(place.root, entry, { act: actHere, barred }));
      });
    return;
  }
  if (total === 0) {
    showEmpty();
    return;
  }
  const label = `Files of ${at.root}${at.path ? `/${readable(at.path)}` : ''}`;
  showFolder(screen, items, { root: at.root, total, label, act: actHere, barred,
    buttons: entries => buttonsFor(entries, place), foot: footOf(found) }, { isNew });
  replace(find('[data-foot]'), ...footOf(found));
}

// Read anew, a very large folder keeps what was read of it further down.
function withRest(fresh, before) {
  if (!fresh.next_offset || !before?.items || before.items.length <= fresh.items.length) return fresh;
  return { ...fresh, items: [...fresh.items, ...before.items.slice(fresh.items.length)],
    next_offset: before.next_offset };
}

function footOf({ items, total, next_offset: next }) {
  const most = known.limits ? byteSize(known.limits.upload_max_bytes) : '';
  if (next)
    return [`${items.length} of ${total} are read. `,
      element('button.btn.sm', { key: 'rest', click: readRest }, 'Read the next ones')];
  return [
    `Drop files anywhere on this page. One upload takes at most ${most}, four go at once; nothing is seen here `
    + `until a file is whole.`,
  ];
}

function showEmpty() {
  screen.replaceChildren(
    empty('Nothing in here yet', element('p', barred() || 'Drop files anywhere on this page, or choose some.'),
      element('div.cmd', code(uploadCommandTo(at.root, at.path))))
  );
}

function failed({ status, code }) {
  if (status === 404) return `${at.root}${at.path ? '/' : ''}${readable(at.path)} is not there.`;
  return code === 'root_not_allowed' ? 'There are no files here for you.' : 'It could not be read.';
}

// With a way on, where trying again is none.
function gone(error) {
  if (error.status !== 404 && error.status !== 403) return null;
  const up = element('a.btn.sm', { href: at.path ? pageOf(at.root, folderOf(at.path)) : '/files', 'data-go': true,
    key: 'up' }, at.path ? 'The folder above' : 'Your file roots');
  return [unread(error, failed(error), openPage), element('div.row', up)];
}

function unready() {
  known.found = null;
  showPlace();
}

// Roots, breadcrumbs, what the head's buttons do, and the command.
function showPlace() {
  const root = rootNow(), folder = folderHere();
  find('.lede').textContent = typeof root?.free_bytes === 'number' ? `${byteSize(root.free_bytes)} free` : '';
  replace(find('[data-roots]'), ...(known.roots ?? [{ id: at.root || WORK, read_only: false }]).map(rootLink));
  const parts = at.path ? at.path.split('/') : [];
  const crumb = (text, path, isLast) =>
    isLast
      ? element('span.strong.ref', { 'aria-current': 'page', dir: 'auto' }, text)
      : element('a.ref', { href: pageOf(at.root, path), 'data-go': true, cmd: openCommand(at.root, { path }),
        key: `crumb-${path}`, dir: 'auto' }, text);
  const crumbs = parts.length === 0
    ? []
    : [crumb(at.root || WORK, '', false),
      ...parts.flatMap((part,
        n) => [element('span.muted', '/'),
        crumb(readable(part), parts.slice(0, n + 1).join('/'), n === parts.length - 1)]
      )];
  replace(find('[data-crumbs]'), ...crumbs);
  replace(find('[data-mounted]'), ...(root ? mountedAt(root, folder) : ['\u00a0']));
  showButtons(folder);
  const isFile = known.found && known.found.entry.type !== 'directory';
  setCommand(!at.root ? [FS_ROOTS] : openCommand(at.root, { path: at.path, type: isFile ? 'file' : 'directory' }));
}

// What is asked for in a place is done there, wherever the person has walked to meanwhile.
const placeNow = () => ({ root: at.root, folder: folderHere() });
const isHere = place => place.root === at.root && place.folder === folderHere();

const folderHere = () => known.found && known.found.entry.type !== 'directory' ? folderOf(at.path) : at.path;

function rootLink({ id, read_only: isReadOnly }) {
  return element('a', { href: pageOf(id, ''), 'data-go': true, key: `root-${id}`, cmd: openCommand(id, { path: '' }),
    'aria-current': id === (at.root || WORK) }, element('span.mono', id),
    isReadOnly && element('span.muted', icon(LOCK_ICON), element('span.vh', 'read-only')));
}

function mountedAt({ mounted_at: mounted, path }, folder) {
  const below = folder ? `/${readable(folder)}` : '';
  return ['at ', element('span.mono.ref', `${mounted ?? spelledOut(path)}${below}`),
    mounted ? ' in your workspaces' : ' on the host'];
}

function showButtons(folder) {
  const reason = barred();
  find('#barred').textContent = reason;
  for (const button of findAll('[data-writes]')) {
    setAttribute(button, 'aria-disabled', Boolean(reason));
    setAttribute(button, 'aria-describedby', reason ? 'barred' : null);
  }
  const root = at.root || WORK;
  const commands = { folder: makeCommand(root, folder), all: loadCommand(root, { path: folder }),
    upload: uploadCommandTo(root, folder) };
  for (const [name, cmd] of Object.entries(commands)) setAttribute(find(`[data-do=${name}]`), 'data-cmd', cmd);
  setAttribute(find('[data-do=all]'), 'aria-disabled', isOffline());
}

const uploadCommandTo = (root, folder) => uploadCommand('LOCAL-FILE', argument(root, folder, '/'));

// What can be done with those that are chosen.
function buttonsFor(entries, place = placeNow()) {
  const button = (kind, label, commandOf, more = {}, name = null) =>
    element('button', { class: 'btn sm', 'data-act': kind, key: kind, cmd: commandsFor(entries, entry =>
      commandOf(place.root, entry)), ...more, click: () =>
        act(kind, entries, place) }, name && icon(name), label);
  const writes = barred() ? { 'aria-disabled': true, 'aria-describedby': 'barred' } : {};
  return [
    button('download', 'Download', loadCommand, {}, 'download'),
    button('move', 'Move', moveCommand, writes),
    button('remove', 'Remove', removeCommand, { ...writes, class: 'btn sm danger' }, REMOVE_ICON),
  ];
}

// ---- doing ----

// Parts of the screen that few visits need; another release of the service no longer has them.
const PARTS = { actions: () => import('./actions.js'), uploads: () => import('./uploads.js') };

async function loaded(part, use) {
  let module;
  try {
    module = await PARTS[part]();
  } catch {
    answer(
      refused({ code: 'not_loaded', message: 'a part of this page could not be loaded; reload the page', hint: '' }, {
        dismiss: () => answer(null),
      })
    );
    return null;
  }
  return use(module);
}

async function act(kind, entries, place = placeNow()) {
  if (isOffline() || (barred() && !['download', 'archive'].includes(kind))) return;
  answer(null);
  await loaded('actions', ({ actions }) => actWith(actions, kind, entries, place));
}

async function actWith(actions, kind, entries, place) {
  if (kind === 'download' || kind === 'archive') {
    await fetchAll(actions, entries, place);
    return;
  }
  if (kind === 'remove') {
    if (await actions.askToRemove(place.root, entries)) await removeAll(entries, place);
    return;
  }
  const isDone = kind === 'folder'
    ? await actions.askForFolder(place.root, place.folder)
    : kind === 'rename'
    ? await actions.askForName(place.root, entries[0])
    : await actions.askForPlace(place.root, place.folder, entries);
  if (isDone) announce({ folder: 'Made', rename: 'Renamed', move: 'Moved' }[kind]);
  unchooseIn(place);
  if (isDone && isFileOpen(entries, place)) go(pageOf(at.root, folderOf(at.path)));
  else refreshSoon();
}

const isFileOpen = (entries, { root }) =>
  known.found?.entry.type !== 'directory' && root === at.root && entries[0]?.path === at.path;
const unchooseIn = place => {
  if (isHere(place) && find('[data-folder]')) unchoose();
};

async function fetchAll(actions, entries, { root }) {
  for (const entry of entries) {
    try {
      const skipped = await actions.download(root, entry.path, entry.type === 'directory' ? 'archive' : 'download');
      toast(
        skipped
          ? `The download begins; ${counted(skipped, 'entry', 'entries')} cannot be read and ${
            skipped === 1 ? 'is' : 'are'
          } left out`
          : 'The download begins'
      );
    } catch (error) {
      answerRefusal(error, `${spelledOut(entry.name)} was not downloaded.`);
      return;
    }
  }
}

async function removeAll(entries, place) {
  let number = 0;
  try {
    for (const { path, type } of entries) {
      announce(`Removing ${number + 1} of ${entries.length}`);
      await call('DELETE', apiOf(place.root, 'file', path, type === 'directory' ? '&recursive=true' : ''));
      number += 1;
    }
    announce('Removed');
  } catch (error) {
    answerRefusal(error,
      `${spelledOut(entries[number].name)} was not removed${number ? `, the ${number} before it were` : ''}.`);
  }
  unchooseIn(place);
  if (number && isFileOpen(entries, place)) go(pageOf(at.root, folderOf(at.path)));
  else await refresh();
}

// ---- uploads ----

// `choose` gets the part that uploads, and gives what it shall send.
async function take(choose) {
  if (rootNow()?.read_only) {
    toast(barred());
    return;
  }
  const root = at.root, folder = folderHere();
  await loaded('uploads', async module => {
    if (!desk) {
      ({ desk } = module);
      desk.onUploads(onUpload);
    }
    desk.uploads.limit = known.limits?.upload_max_bytes ?? Infinity;
    const found = await choose(desk);
    if (found.files.length + found.bare.length) desk.addUploads(root, folder, found);
    else toast('Nothing in that can be uploaded');
  });
}

// A file that is whole appears; of a folder, once it is the one that is shown.
function onUpload(item) {
  const isVisible = item?.root === at.root && known.found
    && (folderHere() === '' || item.path.startsWith(`${folderHere()}/`));
  if (item?.state === 'done' && isVisible) refreshSoon();
}

const ACTIONS = {
  folder: () => act('folder', []),
  all: () =>
    act('archive', [{ name: folderHere() ? readable(folderHere()) : at.root, path: folderHere(), type: 'directory' }]),
  upload: () => find('#files').click(),
  tree: () => find('#tree').click(),
};
for (const button of findAll('[data-do]'))
  button.addEventListener('click', () => {
    if (!button.hasAttribute('aria-disabled') && !isOffline()) ACTIONS[button.dataset.do]();
  });
for (const input of findAll('input#files, input#tree')) {
  input.addEventListener('change', () => {
    const files = [...input.files];
    input.value = '';
    take(({ fromChooser }) => fromChooser(files));
  });
}

// ---- dropping: anywhere on the page ----

const hasFiles = event => event.dataTransfer?.types.includes('Files') && !find('dialog[open]');
document.addEventListener('dragover', event => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = rootNow()?.read_only ? 'none' : 'copy';
  find('[data-drop] b').textContent = barred()
    || `Drop into ${at.root}${folderHere() ? '/' : ''}${readable(folderHere())}`;
  find('[data-drop]').hidden = false;
});
document.addEventListener('dragleave', event => {
  if (!event.relatedTarget) find('[data-drop]').hidden = true;
});
document.addEventListener('drop', event => {
  find('[data-drop]').hidden = true;
  if (!hasFiles(event)) return;
  event.preventDefault();
  const entries = [...event.dataTransfer.items].map(item => item.webkitGetAsEntry?.() ?? item.getAsFile()).filter(
    Boolean
  ); // gone after this event
  take(({ fromDrop }) => fromDrop(entries));
});

Object.assign(at, placeOf(location));
showPlace();
await startPage({ read, took, show, loading: folderSkeleton, failed, gone, unready, delayMs: 300,
  back: () => desk?.goOnNow() });
