// A workspace that is not there: what its set-up does, until it is; or that there is none.
import { all } from '../frame/api.js';
import { askToCancel, cancelCommand, sendCancel } from '../parts/cancelling.js';
import { element, find, icon, replace, setAttribute, empty } from '../frame/dom.js';
import { onEvent } from '../frame/events.js';
import { isOffline } from '../frame/frame.js';
import { refused } from '../frame/notices.js';
import { loadedOf, movedOn } from '../parts/progress.js';
import { PHASES } from '../parts/workspace_states.js';

/** @type {Api.Operation} */
let operation = null;
let place = null;

// What is shown instead of a workspace that is not there.
export function absent(title, text) {
  return empty(title, element('p', text),
    element('a.btn', { href: '/workspaces', cmd: ['ws list'] },
      icon('M2.5 3.5h11v9h-11zM5 6.5l2 1.75L5 10M8.5 10.5h2.5'), 'Your workspaces'));
}

// What is shown instead of a workspace of this name; null where none is set up.
export async function setupOf(name) {
  const found = await all('/api/operations?kind=setup&status=queued,running', { background: true });
  operation = found.find(({ subject }) => subject.name === name) ?? null;
  if (!operation) return null;
  place = element('section.notice', { 'data-setup': true });
  showSetup();
  return place;
}

function showSetup() {
  const { subject, template, status, phase, progress } = operation;
  replace(place, icon('info'),
    element('div',
      element('p', element('b', `${subject.name} is being set up.`), ' ',
        PHASES[status === 'queued' ? 'queued' : phase] ?? '', template ? ` It is made from ${template.name}.` : ''),
      ...loadedOf(progress),
      element('div.row',
        element('button.btn.sm', { key: 'cancel', cmd: cancelCommand(operation.id), click: cancel }, icon('close'),
          'Cancel'),
        element('a.btn.sm.quiet', { href: '/workspaces', cmd: ['ws list'], key: 'list' }, 'Your workspaces'))));
}

async function cancel({ currentTarget: button }) {
  if (isOffline() || button.getAttribute('aria-busy') || !await askToCancel(operation)) return;
  setAttribute(button, 'aria-busy', true);
  try {
    await sendCancel(operation.id);
  } catch (error) {
    if (error.status !== 401) find('div', place).append(refused(error, { what: 'It was not cancelled.' }));
    setAttribute(button, 'aria-busy', null);
  }
}

onEvent(({ type, subject, data }) => {
  if (type !== 'operation.progress' || subject?.id !== operation?.id || !place.isConnected) return;
  operation = movedOn(operation, data);
  showSetup();
});
