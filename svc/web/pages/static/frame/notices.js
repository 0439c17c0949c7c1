// Notices of refused requests: message, button for the hint's action, the hint as a command, code.
import { command, element, find, icon } from './dom.js';
import { onState } from './events.js';

// `what` names the failed action; `act` performs the error's action; `retry` repeats the request.
export function refused(error, { what = '', act = null, retry = null, dismiss = null, answers = true } = {}) {
  const kind = error.code === 'gpu_unavailable' ? 'warn' : 'danger';
  const { action, hint } = error;
  const hasAction = action && act;
  const buttons = [
    hasAction
    && element('button.btn.sm.primary', { 'data-cmd': hint || null, 'data-key': 'act',
      on: { click: () => ifMeant(action, act) } }, action.label),
    retry
    && element('button.btn.sm', { 'data-key': 'retry', on: { click: retry } }, 'Try again'),
    retry && element('span.muted.small.num', { 'data-countdown': true }),
    dismiss
    && element('button.btn.sm.quiet', { 'data-key': 'dismiss', on: { click: dismiss } }, 'Dismiss'),
  ].filter(Boolean);
  return element('div', { class: `notice ${kind}`, role: answers ? 'alert' : null, tabindex: '-1',
    'data-code': error.code }, icon('warning'),
    element('div', element('p', what && element('b', what), what && ' ', sentence(error.message, what)),
      buttons.length > 0 && element('div.row', buttons), ...hintOf(hint),
      element('span.code', [error.code, error.request_id].filter(Boolean).join(', '))));
}

let askingPart = null; // loads what asks

export function askByPart(load) {
  askingPart = load;
}

// Perform the action of a refusal's button, after a confirmation if it ends something.
export async function ifMeant(action, act) {
  const { isMeant } = await askingPart();
  if (await isMeant(action)) act(action);
}

// A hint as a command with a copy button, or as a sentence.
export function hintOf(hint) {
  if (!hint) return [];
  return /^(sudo )?svc /.test(hint) ? [command(hint)] : [element('p.muted.small', hint)];
}

// A message as a sentence. Its first word is not capitalised where it is a name: of a file, or one in `said`.
export function sentence(text, said = '') {
  const [label] = /^[^\s,;]*/.exec(text), isName = !/^[a-z']+$/.test(label) || said.split(/[\s,.:;]/).includes(label);
  const first = isName ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

// The notice of a failed reading; a retryable one is repeated by itself while the notice is on the page.
export function unread(error, what, retry) {
  const again = () => {
    clearInterval(timer);
    retry();
  };
  const notice = refused(error, { what, retry: error.retryable ? again : null, answers: false });
  const counter = find('[data-countdown]', notice), seconds = error.retryAfter ?? 4, end = Date.now() + seconds * 1000;
  const timer = counter && setInterval(() => {
    const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    counter.textContent = `by itself in ${left} s`;
    if (!notice.isConnected) clearInterval(timer);
    else if (left === 0) again();
  }, 500);
  if (counter) counter.textContent = `by itself in ${Math.ceil(seconds)} s`;
  return notice;
}

// Show the notice of the last action in [data-answer]; null removes it.
export function answer(notice) {
  const box = find('[data-answer]');
  if (!box) return;
  box.replaceChildren(...(notice ? [notice] : []));
  box.hidden = notice === null;
  if (notice) {
    notice.focus();
    notice.scrollIntoView({ block: 'nearest' });
  }
}

// Remove the notice `unreachable` once the service answers.
onState(({ name }) => {
  if (name === 'live' && find('[data-answer] > [data-code=unreachable]')) answer(null);
});

// Show a refusal with a Dismiss button; `act` performs its action.
export const answerRefusal = (error, what, act = null) =>
  answer(refused(error, { what, act, dismiss: () => answer(null) }));

export function announce(text) {
  find('[data-said]').textContent = text;
}
