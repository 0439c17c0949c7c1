// The composer without its form: while it is read, where there is no template, where it failed.
import { element, find, icon } from '../frame/dom.js';
import { skeleton } from '../frame/frame.js';
import { countDown, refused } from '../frame/notices.js';

export function formBones() {
  const box = () => element('span', { class: 'skel box' });
  const bones = (area, ...parts) => element('div', { class: `panel ${area}`, 'aria-busy': 'true', 'aria-label': 'Loading' }, element('div', { class: 'body stack-4' }, parts));
  return element('div', { class: 'composer' }, bones('a-form', skeleton('2'), box(), box(), box(), skeleton('3'), box(), skeleton('2'), box()), bones('a-room', skeleton('2'), box(), box(), box()));
}

export const noTemplate = () => element('section', { class: 'empty dash' }, element('h2', {}, 'No template can be used yet'),
  element('p', {}, 'A workspace is made from a template: an image, and what it gets. Make one of your own, or ask an administrator for one that everybody can use.'),
  element('a', { class: 'btn', href: '/templates', 'data-cmd': 'svc template list' }, 'Templates'));

// A set-up that goes on without its page is a link away.
export const underWay = ({ id, subject, template }) => element('div', { class: 'notice inset' }, icon('start'), element('div', {},
  element('div', { class: 'row between' }, element('p', { class: 'ref' }, element('span', { class: 'name' }, subject.name), ` is being set up${template ? ` from ${template.name}` : ''}.`),
    element('a', { class: 'btn sm', href: `/new?setup=${encodeURIComponent(id)}`, 'data-cmd': `svc operation watch ${id}` }, 'Show it'))));

// Why there is no form; `stop` ends the count to the next try.
export function notComposed(error, retry) {
  const notice = refused(error, { what: error.status === 403 ? 'There are no workspaces here for you.' : error.status === 404 ? 'It cannot be shown.' : 'A new workspace cannot be composed now.', retry, answers: false });
  const counter = find('[data-countdown]', notice);
  return { notice, stop: counter ? countDown(counter, error.retryAfter ?? 4, retry) : () => {} };
}

export const lostNotice = text => element('div', { class: 'notice warn inset', 'data-lost': true }, icon('warning'), element('div', {}, element('p', { class: 'ref' }, text)));
