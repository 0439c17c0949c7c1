// Notices of refused requests: message, button for the hint's action, the hint as a command, code.
import { command, element, find, notice } from './dom.js';
import { onState } from './events.js';
import { commaList } from './format.js';

// `what` names the failed action; `act` performs the error's action; `retry` repeats the request.
export function refused(error, { what = '', act = null, retry = null, dismiss = null, answers = true } = {}) {
  const kind = error.code === 'gpu_unavailable' ? 'warn' : 'danger';
  const { action, hint } = error;
  const hasAction = action && act;
  const buttons = [
    hasAction
    && element('button.btn.sm.primary', { cmd: hint || null, key: 'act', click: () => ifMeant(action, act) },
      action.label),
    retry
    && element('button.btn.sm', { key: 'retry', click: retry }, 'Try again'),
    retry && element('span.muted.small.num', { 'data-countdown': true }),
    dismiss
    && element('button.btn.sm.quiet', { key: 'dismiss', click: dismiss }, 'Dismiss'),
  ].filter(Boolean);
  return notice(kind, 'warning', { role: answers ? 'alert' : null, tabindex: '-1', 'data-code': error.code },
    element('p', what && element('b', what), what && ' ', sentence(error.message, what)),
    buttons.length > 0 && element('div.row', buttons), ...hintOf(hint),
    element('span.code', commaList(error.code, error.request_id)));
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
  const failed = refused(error, { what, retry: error.retryable ? again : null, answers: false });
  const counter = find('[data-countdown]', failed), seconds = error.retryAfter ?? 4, end = Date.now() + seconds * 1000;
  const timer = counter && setInterval(() => {
    const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    counter.textContent = `by itself in ${left} s`;
    if (!failed.isConnected) clearInterval(timer);
    else if (left === 0) again();
  }, 500);
  if (counter) counter.textContent = `by itself in ${Math.ceil(seconds)} s`;
  return failed;
}

// Show the notice of the last action in [data-answer]; null removes it.
export function answer(content) {
  const box = find('[data-answer]');
  if (!box) return;
  showOnly(box, content);
  if (content) {
    content.focus();
    content.scrollIntoView({ block: 'nearest' });
  }
}

// Show this alone in a place; null hides the place.
export function showOnly(place, content) {
  place.replaceChildren(...(content ? [content] : []));
  place.hidden = content === null;
}

// Remove the notice `unreachable` once the service answers.
onState(({ name }) => {
  if (name === 'live' && find('[data-answer] > [data-code=unreachable]')) answer(null);
});

// Show a refusal with a Dismiss button; `act` performs its action. The end of the session is the frame's to say.
export const answerRefusal = (error, what, act = null) =>
  error.status !== 401 && answer(refused(error, { what, act, dismiss: () => answer(null) }));

export function announce(text) {
  find('[data-said]').textContent = text;
}
