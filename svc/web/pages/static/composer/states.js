// The composer without its form: while it is read, and where it failed.
import { element, find } from '../frame/dom.js';
import { skeleton } from '../frame/frame.js';
import { countDown, refused } from '../frame/notices.js';

export function formBones() {
  const box = () => element('span', { class: 'skel box' });
  const bones = (area, ...parts) => element('div', { class: `panel ${area}`, 'aria-busy': 'true', 'aria-label': 'Loading' }, element('div', { class: 'body stack-4' }, parts));
  return element('div', { class: 'composer' }, bones('a-form', skeleton('2'), box(), box(), box(), skeleton('3'), box(), skeleton('2'), box()), bones('a-room', skeleton('2'), box(), box(), box()));
}

// Why there is no form; `stop` ends the count to the next try.
export function notComposed(error, retry) {
  const notice = refused(error, { what: error.status === 403 ? 'There are no workspaces here for you.' : error.status === 404 ? 'It cannot be shown.' : 'A new workspace cannot be composed now.', retry, answers: false });
  const counter = find('[data-countdown]', notice);
  return { notice, stop: counter ? countDown(counter, error.retryAfter ?? 4, retry) : () => {} };
}
