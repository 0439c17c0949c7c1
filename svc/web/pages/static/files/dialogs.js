// The dialogs of the files screen: a name for a folder, a new name, another folder. The command follows what is typed.
import { call } from '../frame/api.js';
import { element } from '../frame/dom.js';
import { ask } from '../frame/asking.js';
import { refused } from '../frame/notices.js';
import { commandsFor, makeCommand, moveCommand, removeCommand } from './commands.js';
import { apiOf, encodedPath, folderOf, joined, lastOf, readable, argument } from './paths.js';
import { formDialog } from '../parts/form_dialog.js';
import { field, plainInput } from '../parts/form.js';
import { counted } from '../frame/format.js';
import { spelledOut } from '../parts/unseen.js';

// One field and one action; `act(text, forced)` does it. A file whose name is taken can be replaced where there is a
// `target(text)`, which gives its {root, path}: `forced()` is true for the one request that "Replace it" was pressed
// for. Resolves to whether it is done.
async function askFor({ title, label, value, help, action, commandOf, act, suggest = null, target = null }) {
  const input = plainInput('mono', { value, list: suggest ? 'folders' : null });
  let force = false;
  const list = element('datalist', { id: 'folders' });
  if (suggest) input.addEventListener('input', () => suggest(input.value, list));
  const replaceIt = () => {
    force = true;
    input.form.requestSubmit();
  };
  const send = async () => {
    let isNext = force, wasForced = false;
    force = false;
    const forced = () => {
      wasForced = isNext;
      isNext = false;
      return wasForced;
    };
    const text = input.value.trim().replace(/^\/+|\/+$/g, '');
    if (!text && !suggest)
      throw { message: 'a name is needed', fields: [{ field: 'name', message: 'A name is needed' }] };
    try {
      await act(text, forced);
    } catch (error) {
      if (!target || error.code !== 'file_exists' || wasForced) throw error;
      if (await isFolder(target(text)))
        throw refused({ ...plainly(error),
          message: 'A folder of that name is there already, and nothing replaces a folder.' });
      throw element('div.stack-2', { tabindex: '-1' }, refused(error),
        element('div.row', element('button.btn.sm.danger', { key: 'replace', click: replaceIt }, 'Replace it')));
    }
  };
  return await formDialog({ title, fields: [field('name', label, input, { help }), ...(suggest ? [list] : [])], action,
    commandOf: () => commandOf(input.value.trim()), send }) !== null;
}

const plainly = ({ code, message, request_id: id }) => ({ code, message, request_id: id, hint: '', action: null });

const isFolder = ({ root, path }) =>
  call('GET', apiOf(root, 'list', path, '&limit=1'), { background: true }).then(
    ({ entry }) => entry.type === 'directory',
    () => false
  );

export function askForFolder(root, folder) {
  return askFor({
    title: 'New folder',
    label: 'Name',
    value: '',
    help: `In ${root}${folder ? '/' : ''}${readable(folder)}. A name with / makes the folders above it too.`,
    action: 'Make the folder',
    commandOf: name => makeCommand(root, folder, name),
    act: name =>
      call('POST', apiOf(root, 'mkdir', joined(folder, encodedPath(name))), { body: { parents: name.includes('/') } }),
  });
}

const move = (root, path, to, force) => call('POST', apiOf(root, 'move', path), { body: { to, force } });

export function askForName(root, entry) {
  const above = folderOf(entry.path);
  const to = name => joined(above, encodedPath(name));
  return askFor({
    title: `Rename ${spelledOut(entry.name)}`,
    label: 'New name',
    value: entry.utf8 ? entry.name : '',
    help: 'Programs that have it open go on with it.',
    action: 'Rename it',
    target: name => ({ root, path: to(name) }),
    commandOf: name => moveCommand(root, entry, argument(root, name ? to(name) : joined(above, 'NAME'))),
    act: (name, forced) => move(root, entry.path, to(name), forced()),
  });
}

// Resolves to whether all of them were moved; the first refusal is shown in the dialog, the rest is left to do.
export function askForPlace(root, folder, entries) {
  const left = [...entries];
  const to = (place, entry) => joined(place ? encodedPath(place) : '', lastOf(entry.path));
  return askFor({
    title: entries.length === 1 ? `Move ${spelledOut(entries[0].name)}` : `Move ${entries.length} entries`,
    label: `Folder in ${root}`,
    value: decodeURIComponentOr(folder),
    help: `Empty is ${root} itself. To another root nothing is moved: download and upload it.`,
    action: 'Move',
    target: place => ({ root, path: to(place, left[0]) }),
    suggest: (text, list) => suggestFolders(root, text, list),
    commandOf: place =>
      commandsFor(entries, entry =>
        moveCommand(root, entry, argument(root, place ? encodedPath(place.replace(/^\/+|\/+$/g, '')) : '', '/'))),
    act: async (place, forced) => {
      while (left.length) {
        await move(root, left[0].path, to(place, left[0]), forced());
        left.shift();
      }
    },
  });
}

function decodeURIComponentOr(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return '';
  }
}

let suggested = null;

async function suggestFolders(root, text, list) {
  const above = text.includes('/') ? text.slice(0, text.lastIndexOf('/')) : '';
  if (suggested === `${root}/${above}`) return;
  suggested = `${root}/${above}`;
  try {
    const { items } = await call('GET', apiOf(root, 'list', above ? encodedPath(above) : '', '&limit=1000'), {
      background: true,
    });
    const names = items.filter(item => item.type === 'directory' && item.utf8).slice(0, 100);
    list.replaceChildren(...names.map(item => element('option', { value: joined(above, item.name) })));
  } catch { /* no suggestions then */ }
}

// What is lost, in words: how much a folder has is asked first.
export async function askToRemove(root, entries) {
  const [first] = entries, one = entries.length === 1;
  const name = one ? spelledOut(first.name) : counted(entries.length, 'entry', 'entries');
  const text = [];
  if (!one)
    text.push(
      `${entries.slice(0, 5).map(entry => spelledOut(entry.name)).join(', ')}${
        entries.length > 5 ? ` and ${entries.length - 5} more` : ''
      }.`
    );
  if (one && first.type === 'directory') {
    const total = await call('GET', apiOf(root, 'list', first.path, '&limit=1'), { background: true }).then(
      found => found.total,
      () => null
    );
    text.push(
      total === 0
        ? 'The folder is empty.'
        : `The folder goes with all that is in it${
          total === null ? '' : `: ${counted(total, 'entry', 'entries')}, and what is in those`
        }.`
    );
  } else if (entries.some(entry => entry.type === 'directory')) text.push('Folders go with all that is in them.');
  if (entries.some(entry => entry.type === 'symlink'))
    text.push(one ? 'The link goes; what it leads to stays.' : 'Of links, what they lead to stays.');
  text.push('This cannot be undone.');
  return ask({ title: `Remove ${name}?`, paragraphs: text, action: one ? `Remove ${name}` : 'Remove them',
    cmd: commandsFor(entries, entry => removeCommand(root, entry)), danger: true });
}
