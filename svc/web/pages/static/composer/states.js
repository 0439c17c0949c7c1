// The composer without its form: while it is read, and where it failed.
import { element } from '../frame/dom.js';
import { skeleton } from '../frame/frame.js';
import { unread } from '../frame/notices.js';

export function formSkeleton() {
  const box = () => element('span.skel.box');
  const skeletonNow = (area, label, ...parts) =>
    element('section', { class: `panel ${area}`, 'aria-busy': true, 'aria-label': label },
      element('div.body.stack-4', parts.flat()));
  return element('div.composer',
    skeletonNow('a-form', 'Loading the form', skeleton('2'), box(), box(), box(), skeleton('3'), box(), skeleton('2'),
      box()), skeletonNow('a-room', 'Loading what is left', skeleton('2'), box(), box(), box()));
}

// Why there is no form.
export const notComposed = (error, retry) =>
  unread(error, error.status === 403
    ? 'There are no workspaces here for you.'
    : error.status === 404
    ? 'It cannot be shown.'
    : 'A new workspace cannot be composed now.', retry);
