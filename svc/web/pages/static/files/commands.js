// The commands that several buttons say.
import { encodedPath, joined, argument } from './paths.js';

const VISIBLE_MAX = 10;

// A command for each, of many the first ones.
export function commands(entries, commandOf) {
  const some = entries.slice(0, VISIBLE_MAX).map(commandOf).join(' && ');
  return entries.length > VISIBLE_MAX ? `${some}  # and ${entries.length - VISIBLE_MAX} more` : some;
}

export const removal = (root, { path, type }) =>
  `svc fs rm ${argument(root, path)}${type === 'directory' ? ' --recursive' : ''} --yes`;
export const folderLine = (root, folder, name) =>
  `svc fs mkdir ${argument(root, joined(folder, name ? encodedPath(name) : 'NAME'))}${
    name.includes('/') ? ' --parents' : ''
  }`;
