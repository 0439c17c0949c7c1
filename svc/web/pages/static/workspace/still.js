// Nothing moves under the hand: what says the same stays the very elements it was, and what changes waits for the hand.
import { element, replace } from '../frame/dom.js';

const said = new WeakMap(); // place -> what it says
const owed = new Map(); // place -> what is to be put there when the hand is off
let isHeld = false;

document.addEventListener('pointerdown', () => { isHeld = true; });
for (const name of ['pointerup', 'pointercancel']) document.addEventListener(name, () => setTimeout(letGo));

function letGo() {
  isHeld = false;
  const calls = [...owed.values()];
  owed.clear();
  for (const call of calls) call();
}

// Put what `make` gives into a place, if it says anything else than before: `says` is all that it depends on.
export function put(place, says, make) {
  const text = JSON.stringify(says);
  owed.delete(place);
  if (said.get(place) === text) return;
  if (isHeld) { owed.set(place, () => put(place, says, make)); return; }
  said.set(place, text);
  replace(place, ...make());
}

// The same for the rows of a table: a row stays where it is, and only its cells are made anew.
export function putRows(body, items, { key, says, cells }) {
  if (isHeld) { owed.set(body, () => putRows(body, items, { key, says, cells })); return; }
  owed.delete(body);
  const old = new Map([...body.children].map(row => [row.dataset.id, row]));
  const rows = items.map(item => old.get(key(item)) ?? element('tr', { role: 'row', tabindex: '-1', 'data-id': key(item) }));
  rows.forEach((row, at) => { if (body.children[at] !== row) body.insertBefore(row, body.children[at] ?? null); });
  while (body.children.length > rows.length) body.lastElementChild.remove();
  items.forEach((item, at) => put(rows[at], says(item), () => cells(item)));
}
