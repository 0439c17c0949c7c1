// No GPU is free: who has them, and a start by itself as soon as one is, while the page is open.
import { call } from '../frame/api.js';
import { element, find, replace } from '../frame/dom.js';
import { onEvent } from '../frame/events.js';
import { isOffline } from '../frame/frame.js';
import { time } from '../frame/format.js';
import { bank } from '../parts/gpu_bank.js';
import { commandOf } from '../parts/workspace_actions.js';

const TRY_MS = 30_000; // besides: at once when the host's capacity changes
const waiting = { record: /** @type {Api.Workspace} */ (null), path: '', timer: null, notice: null, done: null };

// Add to the notice of a refused start the GPUs of the host, and the button that goes on trying; `path` is the
// workspace's, `done` is called when it is started or refused for another reason.
export function offerToWait(notice, { record, path, gpus, done }) {
  stopWaiting();
  Object.assign(waiting, { notice, path, done });
  const text = find('p', notice);
  const row = find('.row', notice);
  row.prepend(element('span', { 'data-wait': true }, waitButton(record)));
  if (gpus?.length) text.after(element('div.bank-box', bank(gpus, { compact: true })));
}

/** @param {Api.Workspace} record */
function waitButton(record) {
  return element('button.btn.sm.quiet', { key: 'wait', cmd: commandOf('start', record.name),
    click: () => wait(record) }, 'Keep trying while this page is open');
}

/** @param {Api.Workspace} record */
function wait(record) {
  waiting.record = record;
  waiting.timer = setInterval(tryStart, TRY_MS);
  notify(new Date());
}

function notify(at) {
  replace(find('[data-wait]', waiting.notice), element('span.state.busy', { role: 'status' }, 'Trying'), ' ',
    element('span.muted.small', 'since a GPU may become free; last ', time(at.toISOString(), 'ago')), ' ',
    element('button.btn.sm', { key: 'wait', click: () => {
      const { record } = waiting;
      stopWaiting();
      replace(find('[data-wait]', waiting.notice), waitButton(record));
    } }, 'Stop trying'));
}

function stopWaiting() {
  clearInterval(waiting.timer);
  waiting.record = waiting.timer = null;
}

async function tryStart() {
  const { record } = waiting;
  if (!record || isOffline()) return;
  if (!waiting.notice.isConnected) {
    stopWaiting();
    return;
  } // dismissed, or started by hand
  try {
    await call('POST', `${waiting.path}/start`, { body: {}, background: true });
    stopWaiting();
    waiting.done(true);
  } catch (error) {
    if (error.code === 'gpu_unavailable' || error.retryable) {
      notify(new Date());
      return;
    }
    stopWaiting();
    waiting.done(false);
  }
}

onEvent(({ type }) => {
  if (type === 'capacity.changed') tryStart();
});
