// Rows of a table that stand still: they keep their places, and are touched only where they say anything else.
import { find, keyOfFocus, rowsIn, setAttribute } from '../frame/dom.js';
import { isUnderHand } from './still.js';

const saidBy = new WeakMap(); // row -> what it shows

// Show `rows`, each {id, says, build}: one that says what it said stays the very element that it was.
export function showRows(body, rows) {
  if (isUnderHand(body, () => showRows(body, rows))) return;
  const old = new Map(rowsIn(body).map(row => [row.dataset.id, row]));
  const next = rows.map(({ id, says, build }) => {
    const before = old.get(id);
    if (before && saidBy.get(before) === says) return before;
    const fresh = build();
    setAttribute(fresh, 'data-id', id);
    saidBy.set(fresh, says);
    return before ? takeOver(before, fresh) : fresh;
  });
  arrange(body, next);
}

// Put these rows in this order, and touch none that is in its place: one that is moved loses the focus.
export function arrange(body, rows) {
  rows.forEach((row, at) => {
    if (body.children[at] !== row) body.insertBefore(row, body.children[at] ?? null);
  });
  while (body.children.length > rows.length) body.lastElementChild.remove();
}

// A row in the place of another: the focus stays on its control, and its menu open.
function takeOver(before, fresh) {
  const hadFocus = before.contains(document.activeElement);
  const key = keyOfFocus(before);
  const isOpen = find('details[open]', before) !== null;
  before.replaceWith(fresh);
  if (isOpen) find('details', fresh)?.setAttribute('open', '');
  if (hadFocus) ((key && find(`[data-key="${CSS.escape(key)}"]`, fresh)) || fresh).focus();
  return fresh;
}
