// A refusal is a next step: the API's message, a button that does its hint, the hint as a command, the code.
import { command, element, find, icon } from './dom.js';
import { onState } from './events.js';

// `what` says what was being done; `act` does the error's action; `retry` asks again, by itself where it may.
export function refused(error, { what = '', act = null, retry = null, dismiss = null, answers = true } = {}) {
  const kind = error.code === 'gpu_unavailable' ? 'warn' : 'danger';
  const { action, hint } = error;
  const hasAction = action && act;
  const buttons = [
    hasAction
    && element('button', { class: 'btn sm primary', type: 'button', 'data-cmd': hint || null, 'data-key': 'act',
      on: { click: () => ifMeant(action, act) } }, action.label),
    retry
    && element('button', { class: 'btn sm', type: 'button', 'data-key': 'retry', on: { click: retry } }, 'Try again'),
    retry && element('span', { class: 'muted small num', 'data-countdown': true }),
    dismiss
    && element('button', { class: 'btn sm quiet', type: 'button', 'data-key': 'dismiss', on: { click: dismiss } },
      'Dismiss'),
  ].filter(Boolean);
  return element('div', { class: `notice ${kind}`, role: answers ? 'alert' : null, tabindex: '-1',
    'data-code': error.code }, icon('warning'),
    element('div', {}, element('p', {}, what && element('b', {}, what), what && ' ', sentence(error.message, what)),
      buttons.length > 0 && element('div', { class: 'row' }, buttons), ...hintOf(hint),
      element('span', { class: 'code' }, [error.code, error.request_id].filter(Boolean).join(', '))));
}

let askingPart = null; // loads what asks

export function askByPart(load) {
  askingPart = load;
}

// Do what the button of a refusal says; what ends something is asked about first.
export async function ifMeant(action, act) {
  const { isMeant } = await askingPart();
  if (await isMeant(action)) act(action);
}

// A hint is a command, or a sentence about one.
export function hintOf(hint) {
  if (!hint) return [];
  return /^(sudo )?svc /.test(hint) ? [command(hint)] : [element('p', { class: 'muted small' }, hint)];
}

// A message as a sentence. What it begins with stays as it is where that is a name: of a file, or one that `said` has.
export function sentence(text, said = '') {
  const [word] = /^[^\s,;]*/.exec(text), isName = !/^[a-z']+$/.test(word) || said.split(/[\s,.:;]/).includes(word);
  const first = isName ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

// Why something could not be read; where it may come, it is asked for again by itself, as long as this is shown.
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

// What a press was answered, in [data-answer]: a notice, or null for none.
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

// The service answers again: that it did not is no news any more, and what is shown is read anew.
onState(({ name }) => {
  if (name === 'live' && find('[data-answer] > [data-code=unreachable]')) answer(null);
});

// The same for a refusal, which can be put away; `act` does what its own button says.
export const answerRefusal = (error, what, act = null) =>
  answer(refused(error, { what, act, dismiss: () => answer(null) }));

export function announce(text) {
  find('[data-said]').textContent = text;
}
