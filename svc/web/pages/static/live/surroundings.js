// What the live pages follow besides: the seconds until a next try, and the colours of the page.
import { onChoice } from '../frame/choices.js';

// Say how many seconds there are until `at`, in a place that may be absent; returns what ends it.
export function countDown(place, at) {
  if (!at || !place) return () => {};
  const tick = () => {
    const left = Math.ceil((at - Date.now()) / 1000);
    place.textContent = left > 0 ? `in ${left} s` : 'now';
  };
  tick();
  const timer = setInterval(tick, 500);
  return () => clearInterval(timer);
}

// Call `restyle` when the colours are others, by choice or by the system: of what no style sheet reaches.
export function onColours(restyle) {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', restyle);
  onChoice(restyle);
}
