// The commands that do what the buttons of the files screen do.
import { commandText } from '../frame/commands.js';
import {
  FS_ARCHIVE,
  FS_DOWNLOAD,
  FS_LIST,
  FS_MKDIR,
  FS_MOVE,
  FS_READ,
  FS_REMOVE,
  FS_UPLOAD,
} from '../generated/actions.js';
import { argument, encodedPath, joined } from './paths.js';

const VISIBLE_MAX = 10;

// A command for each, of many the first ones.
export function commandsFor(entries, commandOf) {
  const some = entries.slice(0, VISIBLE_MAX).map(entry => commandOf(entry));
  return entries.length > VISIBLE_MAX ? `${commandText(some)}  # and ${entries.length - VISIBLE_MAX} more` : some;
}

// Of an entry, {path, type}: a folder unless it is said.
export const openCommand = (root, { path, type = 'directory' },
  ...options) => [type === 'file' ? FS_READ : FS_LIST, argument(root, path), ...options];
export const loadCommand = (root,
  { path, type = 'directory' }) => [type === 'directory' ? FS_ARCHIVE : FS_DOWNLOAD, argument(root, path)];
export const moveCommand = (root, { path },
  to = /** @type {any} */ (`${root}/FOLDER/`)) => [FS_MOVE, argument(root, path), to];
export const renameCommand = (root, entry) => moveCommand(root, entry, argument(root, entry.path, '-NEW'));
export const removeCommand = (root,
  { path, type }) => [FS_REMOVE, argument(root, path), type === 'directory' && '--recursive', '--yes'];
export const makeCommand = (root, folder,
  name = '') => [FS_MKDIR, argument(root, joined(folder, name ? encodedPath(name) : 'NAME')),
  name.includes('/') && '--parents'];
export const uploadCommand = (from, to, ...options) => [FS_UPLOAD, from, to, ...options];
