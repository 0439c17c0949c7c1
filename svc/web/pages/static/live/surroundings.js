// What the live pages have alike: what is said of a stream, the seconds until a next try, and the colours of the page.
import { onChoice } from '../frame/choices.js';
import { find } from '../frame/dom.js';

// The mark and the words of its states; a page has its own for the others.
export const STATES = {
  connecting: ['busy', 'Reading'],
  restarting: ['busy', 'The service restarts; it goes on by itself'],
  'signed-out': ['warn', 'Signed out'],
  refused: ['failed', 'It could not be read'],
};

export function startFollowButton(stream, options) {
  find('[data-follow]').addEventListener('click',
    () => (['paused', 'ended'].includes(stream.status.name) ? stream.start(options) : stream.stop()));
}

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
