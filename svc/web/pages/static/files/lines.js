// The commands that several buttons say.
import { encodedPath, joined, word } from './paths.js';

const SHOWN = 10;

// A command for each, of many the first ones.
export function commands(entries, commandOf) {
  const some = entries.slice(0, SHOWN).map(commandOf).join(' && ');
  return entries.length > SHOWN ? `${some}  # and ${entries.length - SHOWN} more` : some;
}

export const removal = (root, { path, type }) =>
  `svc fs rm ${word(root, path)}${type === 'directory' ? ' --recursive' : ''} --yes`;
export const folderLine = (root, folder, name) =>
  `svc fs mkdir ${word(root, joined(folder, name ? encodedPath(name) : 'NAME'))}${
    name.includes('/') ? ' --parents' : ''
  }`;
