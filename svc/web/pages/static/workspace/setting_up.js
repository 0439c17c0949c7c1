// A workspace that is not there: what its set-up does, until it is; or that there is none.
import { all, call } from '../frame/api.js';
import { askToCancel } from '../shared/cancelling.js';
import { element, find, icon, replace, setAttribute } from '../frame/dom.js';
import { onEvent } from '../frame/events.js';
import { isOffline } from '../frame/frame.js';
import { refused } from '../frame/notices.js';
import { quoted } from '../frame/format.js';
import { loadedOf } from '../shared/progress.js';
import { PHASES } from '../shared/workspace_states.js';

/** @type {Api.Operation} */
let operation = null;
let place = null;

// What is shown instead of a workspace that is not there.
export function absent(title, text) {
  return element('section.empty.dash', element('h2', title), element('p', text),
    element('a.btn', { href: '/workspaces', 'data-cmd': 'svc ws list' }, icon('workspaces'), 'Your workspaces'));
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
        element('button.btn.sm', { 'data-key': 'cancel', 'data-cmd': `svc operation cancel ${quoted(operation.id)}`,
          on: { click: cancel } }, icon('close'), 'Cancel'),
        element('a.btn.sm.quiet', { href: '/workspaces', 'data-cmd': 'svc ws list', 'data-key': 'list' },
          'Your workspaces'))));
}

async function cancel({ currentTarget: button }) {
  if (isOffline() || button.getAttribute('aria-busy') || !await askToCancel(operation)) return;
  setAttribute(button, 'aria-busy', 'true');
  try {
    await call('POST', `/api/operations/${encodeURIComponent(operation.id)}/cancel`, { body: {} });
  } catch (error) {
    if (error.status !== 401) find('div', place).append(refused(error, { what: 'It was not cancelled.' }));
    setAttribute(button, 'aria-busy', null);
  }
}

onEvent(({ type, subject, data }) => {
  if (type !== 'operation.progress' || subject?.id !== operation?.id || !place.isConnected) return;
  operation = { ...operation, status: data.status, phase: data.phase, progress: data.progress ?? {} };
  showSetup();
});
