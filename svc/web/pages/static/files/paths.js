// Paths of files: percent-encoded bytes for the API, words of a command, and text that shows what is in it.
import { quoted } from '../frame/commands.js';
import { UNSEEN, spelledOut } from '../parts/unseen.js';

// Typed text as the API writes a path: all but letters, digits and -._~ as bytes.
const encoded = name =>
  encodeURIComponent(name.toWellFormed()).replace(/[!'()*]/g, char =>
    `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
export const encodedPath = path => path.split('/').map(encoded).join('/');
export const joined = (folder, name) => folder ? `${folder}/${name}` : name;
export const folderOf = path => path.slice(0, Math.max(0, path.lastIndexOf('/')));
export const lastOf = path => path.slice(path.lastIndexOf('/') + 1);

function bytesOf(path) {
  return Array.from(path.match(/%[0-9A-Fa-f]{2}|[^%]/g) ?? [],
    part => part.length > 1 ? parseInt(part.slice(1), 16) : part.charCodeAt(0));
}

function textOf(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  } // bytes that are no UTF-8
}

const escaped = (path, isPlain) =>
  bytesOf(path).map(byte => isPlain(byte) ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`)
    .join('');

// A path of the API as text to be read; bytes that are no UTF-8 as \xNN.
export const readable = path =>
  path.split('/').map(part => spelledOut(textOf(part) ?? escaped(part, byte => byte < 0x80))).join('/');

// An argument of a command, of printable characters only: `before` as it is, then a path of the API.
function shellArgument(before, path, after = '') {
  const text = textOf(path), isSeen = text !== null && text.search(UNSEEN) < 0;
  return { quoted: isSeen
    ? quoted(`${before}${text}${after}`)
    : `$'${before}${escaped(path, byte => byte >= 0x20 && byte < 0x7f && byte !== 0x27 && byte !== 0x5c)}${after}'` };
}

export const argument = (root, path, after = '') => shellArgument(path ? `${root}/` : root, path, after);
export const localArgument = name => shellArgument(name.startsWith('-') ? './' : '', encoded(name));

export const pageOf = (root, path) => `/files/${encodeURIComponent(root)}${path ? `?path=${path}` : ''}`;
export const apiOf = (root, verb, path, more = '') => `/api/fs/${encodeURIComponent(root)}/${verb}?path=${path}${more}`;

// The place that the address names: the path stays the bytes that it is.
export function placeOf({ pathname, search }) {
  const pair = search.slice(1).split('&').find(each => each.startsWith('path='));
  return { root: textOf(pathname.split('/')[2] ?? '') ?? '',
    path: (pair?.slice(5) ?? '').replaceAll('+', '%20').replaceAll(/%2F/gi, '/') };
}
