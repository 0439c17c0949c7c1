// Keep unchanged elements; postpone rendering while a pointer button is down.
import { replace } from '../frame/dom.js';

const said = new WeakMap(); // place -> the key of its content
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

// True while a pointer button is down: rendering now would lose its click. `again` is called once it is up.
export function isUnderHand(place, again) {
  owed.delete(place);
  if (isHeld) owed.set(place, again);
  return isHeld;
}

// Replace the content of a place by `make()` if `key`, all that it depends on, has changed.
export function put(place, key, make) {
  if (isUnderHand(place, () => put(place, key, make))) return;
  const text = JSON.stringify(key);
  if (said.get(place) === text) return;
  said.set(place, text);
  replace(place, ...make());
}
