// Update the rows of a table in place: unchanged rows keep their elements and positions.
import { find, keyOfFocus, rowsIn, setAttribute } from '../frame/dom.js';
import { isUnderHand } from './still.js';

const keyBy = new WeakMap(); // row -> its key

// Show `rows`, each {id, key, build}; a row whose `key` is unchanged keeps its element.
export function showRows(body, rows) {
  if (isUnderHand(body, () => showRows(body, rows))) return;
  const old = new Map(rowsIn(body).map(row => [row.dataset.id, row]));
  const next = rows.map(({ id, key, build }) => {
    const before = old.get(id);
    if (before && keyBy.get(before) === key) return before;
    const fresh = build();
    setAttribute(fresh, 'data-id', id);
    keyBy.set(fresh, key);
    return before ? takeOver(before, fresh) : fresh;
  });
  arrange(body, next);
}

// Order the rows; a row in its place is not moved, since moving loses the focus.
export function arrange(body, rows) {
  rows.forEach((row, at) => {
    if (body.children[at] !== row) body.insertBefore(row, body.children[at] ?? null);
  });
  while (body.children.length > rows.length) body.lastElementChild.remove();
}

// Replace a row by a new one; focus and an open menu are carried over.
function takeOver(before, fresh) {
  const hadFocus = before.contains(document.activeElement);
  const key = keyOfFocus(before);
  const isOpen = find('details[open]', before) !== null;
  before.replaceWith(fresh);
  if (isOpen) find('details', fresh)?.setAttribute('open', '');
  if (hadFocus) ((key && find(`[data-key="${CSS.escape(key)}"]`, fresh)) || fresh).focus();
  return fresh;
}
