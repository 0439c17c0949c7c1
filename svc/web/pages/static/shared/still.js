// Nothing moves under the hand: what says the same stays the very elements it was, and what changes waits for the hand.
import { replace } from '../frame/dom.js';

const said = new WeakMap(); // place -> what it says
const owed = new Map(); // place -> what is to be shown there when the hand is off
let isHeld = false;

document.addEventListener('pointerdown', () => {
  isHeld = true;
});
for (const name of ['pointerup', 'pointercancel']) document.addEventListener(name, () => setTimeout(letGo));
document.addEventListener('click', () => {
  isHeld = false;
}, true); // it has its target by now

function letGo() {
  isHeld = false;
  const calls = [...owed.values()];
  owed.clear();
  for (const call of calls) call();
}

// Whether a button is held down, whose press would be lost: `again` shows the place then, once it is not.
export function isUnderHand(place, again) {
  owed.delete(place);
  if (isHeld) owed.set(place, again);
  return isHeld;
}

// Put what `make` gives into a place, if it says anything else than before: `says` is all that it depends on.
export function put(place, says, make) {
  if (isUnderHand(place, () => put(place, says, make))) return;
  const text = JSON.stringify(says);
  if (said.get(place) === text) return;
  said.set(place, text);
  replace(place, ...make());
}
