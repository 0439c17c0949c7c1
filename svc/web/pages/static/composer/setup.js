// A set-up under way: its steps, with bytes and rate, until the workspace is there and runs.
import { call } from '../frame/api.js';
import { askToCancel, cancelCommand, sendCancel } from '../parts/cancelling.js';
import { bar, code, element, notice, replace } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { refused } from '../frame/notices.js';
import { movedOn } from '../parts/progress.js';
import { progressText } from '../parts/progress_text.js';

const OPEN = ['queued', 'running'];
const IMAGE = { checking: 'Looking for its image', pulling: 'Pulling the image', building: 'Building the image',
  copying: 'Copying the image for run_as' };
/** @param {Api.Operation} operation */
const isOpen = operation => OPEN.includes(operation.status);

// `on`: arrived(name, isStarted), back(), again() or null where there is no form to send again, announce(text).
/** @param {Api.Operation} operation */
export function setupOf(operation, { wantsStart, on }) {
  const node = element('div.stack-4', { 'data-setup': operation.id });
  const name = operation.subject.name;
  let now = operation, starting = '', failure = null, isCancelling = false, isDone = false, phaseSaid = '';

  function show() {
    replace(node, ...[panel(), problem()].filter(Boolean));
    const text = phaseText();
    if (text !== phaseSaid) on.announce(text);
    phaseSaid = text;
  }

  function phaseText() {
    if (starting === 'now') return `Starting ${name}`;
    return isOpen(now) ? `${stepTitle()} for ${name}` : `${name}: ${now.status}`;
  }
  const stepTitle = () =>
    now.status === 'queued'
      ? 'Waiting for its turn'
      : now.phase === 'creating'
      ? 'Creating'
      : IMAGE[now.phase] ?? 'Looking for its image';

  function panel() {
    const cancel = element('button.btn.sm', { key: 'cancel', 'aria-busy': isCancelling, 'aria-disabled': isOffline(),
      cmd: cancelCommand(now.id), click: stop }, 'Cancel');
    return element('section.panel', { 'aria-labelledby': 'work-h' },
      element('header',
        element('h2', { id: 'work-h', tabindex: '-1', key: 'work-h' }, 'Setting up ', element('span.name.ref', name)),
        isOpen(now) && element('div.actions', cancel)), element('div.body', element('ol.steps', steps())), isOpen(now)
      && element('footer',
        element('span.muted.small',
          `You can close this page: it goes on, and you find it under Workspaces.${
            wantsStart ? ' This page starts it when it is there.' : ''
          }`)));
  }

  function steps() {
    const at = now.status === 'succeeded' ? 2 : now.phase === 'creating' ? 1 : 0;
    const kind = step =>
      step < at ? 'done' : step > at ? '' : ['failed', 'cancelled'].includes(now.status) ? 'bad' : 'now';
    const image = at > 0 ? 'Its image is in your store' : stepTitle();
    return [step(1, kind(0), image, at === 0 ? progress() : []),
      step(2, kind(1), ['Create ', element('span.name.ref', name)]), wantsStart
      && step(3, starting === 'failed' ? 'bad' : isDone ? 'done' : at === 2 ? 'now' : '',
        starting === 'now' ? 'Starting it' : 'Start it')];
  }

  function step(number, kind, title, more = []) {
    const share = more[0] ?? null;
    return element('li', { class: kind || null },
      element('span.pip', String(number),
        kind && element('span.vh', { done: ', done', now: ', now', bad: ', failed' }[kind])),
      element('div', element('span.row.between', element('span', title), share), ...more.slice(1)));
  }

  // [percent, bar, words] of what is loaded or built.
  function progress() {
    const { current = 0, total, text } = now.progress ?? {};
    if (!total) return text ? ['', element('span.muted.small.ref', text)] : [];
    const percent = Math.min(100, Math.floor(current / total * 100));
    const svg = bar(percent, 'busy');
    svg.classList.add('tall');
    return [element('span.num', `${percent} %`), svg, element('span.muted.small.num.ref', progressText(now.progress))];
  }

  // Why it did not come to its end, and what can be done.
  function problem() {
    const path = `/workspaces/${encodeURIComponent(name)}`;
    if (starting === 'failed') {
      const failed = refused(failure, { what: `${name} is created, and was not started.`, act: mend, retry: start });
      failed.lastElementChild.append(
        element('div', element('a.btn.sm', { href: path, cmd: ['ws get', name] }, 'Open it'))
      );
      return failed;
    }
    if (now.status === 'cancelled')
      return notice('', 'close', { role: 'status' }, element('p', 'Cancelled. ', `There is no workspace ${name}.`),
        element('div.row', back()));
    if (now.status !== 'failed') return null;
    const failed = refused(now.error ?? { code: 'failed', message: 'The set-up failed.' }, {
      what: `${name} was not created.`,
      act: mend,
    });
    failed.lastElementChild.append(
      element('div.row', on.again
        && element('button.btn.sm', { key: 'again', click: on.again }, 'Try again'), back(),
        element('span.muted.small', 'The log: ', code(['operation log', now.id])))
    );
    return failed;
  }
  const back = () =>
    element('button.btn.sm', { key: 'back', click: on.back }, on.again ? 'Back to the form' : 'New workspace');

  async function mend(action) {
    try {
      await call(action.method, action.path, { body: action.body });
      on.announce(`${action.label}: begun`);
      if (starting === 'failed') await start();
    } catch (error) {
      failure = error;
      show();
    }
  }

  async function stop() {
    if (isCancelling || isOffline() || !await askToCancel(now) || !isOpen(now)) return;
    isCancelling = true;
    show();
    try {
      take(await sendCancel(now.id));
    } catch (error) {
      isCancelling = false;
      show();
      node.append(refused(error, { what: `The set-up of ${name} was not cancelled.` }));
    }
  }

  async function start() {
    if (starting === 'now') return;
    starting = 'now';
    show();
    try {
      await call('POST', `/api/workspaces/${encodeURIComponent(now.result.workspace_id)}/start`, { body: {} });
      isDone = true;
      on.arrived(name, true);
    } catch (error) {
      starting = 'failed';
      failure = error;
      show();
    }
  }

  // Its newest record; an end is taken once.
  function take(record) {
    if (!isOpen(now)) return;
    now = record;
    if (now.status === 'succeeded' && wantsStart) start();
    else show();
    if (now.status === 'succeeded' && !wantsStart) on.arrived(name, false);
  }

  async function refresh() {
    if (!isOpen(now)) return;
    try {
      take(await call('GET', `/api/operations/${encodeURIComponent(now.id)}`, { background: true }));
    } catch { /* it is asked for again: by the next event, or in a moment */ }
  }

  show();
  return {
    node,
    refresh,
    show,
    isOpen: () => isOpen(now) || starting === 'now',
    // An event of the stream: progress is taken from it, an end is read.
    handle(event) {
      if (event.subject?.id !== now.id || !isOpen(now)) return;
      if (event.type === 'operation.finished') refresh();
      else if (event.type === 'operation.progress' && isOpen(event.data)) {
        now = movedOn(now, event.data);
        show();
      }
    },
  };
}
