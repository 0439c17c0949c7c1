// A refusal is a next step: the API's message, a button that does its hint, the hint as a command, the code.
import { command, element, icon } from './dom.js';

// `what` says what was being done; `act` does the error's action; `retry` asks again, by itself where it may.
export function refused(error, { what = '', act = null, retry = null, dismiss = null, answers = true } = {}) {
  const kind = error.code === 'gpu_unavailable' ? 'warn' : 'danger';
  const { action, hint } = error;
  const hasAction = action && act;
  const buttons = [
    hasAction && element('button', { class: 'btn sm primary', type: 'button', 'data-cmd': hint || null, 'data-key': 'act', on: { click: () => act(action) } }, action.label),
    retry && element('button', { class: 'btn sm', type: 'button', 'data-key': 'retry', on: { click: retry } }, 'Try again'),
    retry && element('span', { class: 'muted small num', 'data-countdown': true }),
    dismiss && element('button', { class: 'btn sm quiet', type: 'button', 'data-key': 'dismiss', on: { click: dismiss } }, 'Dismiss'),
  ].filter(Boolean);
  return element('div', { class: `notice ${kind}`, role: answers ? 'alert' : null, tabindex: '-1' }, icon('warning'),
    element('div', {},
      element('p', {}, what && element('b', {}, what), what && ' ', sentence(error.message)),
      buttons.length > 0 && element('div', { class: 'row' }, buttons),
      ...hintOf(hint),
      element('span', { class: 'code' }, [error.code, error.request_id].filter(Boolean).join(', '))));
}

// A hint is a command, or a sentence about one.
export function hintOf(hint) {
  if (!hint) return [];
  return /^(sudo )?svc /.test(hint) ? [command(hint)] : [element('p', { class: 'muted small' }, hint)];
}

export function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

// Count down to what is tried by itself; returns the function that ends it.
export function countDown(place, seconds, done) {
  const end = Date.now() + seconds * 1000;
  const tick = () => {
    const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    place.textContent = `by itself in ${left} s`;
    if (left > 0) return;
    clearInterval(timer);
    done();
  };
  const timer = setInterval(tick, 500);
  place.textContent = `by itself in ${Math.ceil(seconds)} s`;
  return () => clearInterval(timer);
}
