// What a row says of its state, and offers.
import { element, find, icon } from '../frame/dom.js';

export const state = (kind, text) => element('span', { class: `state ${kind}` }, text);

// A button of a row: its label names the row; while the service does not answer it does nothing, and says so.
export function rowButton(key, label, name, line, { isOffline, press, kind = 'quiet', picture = null }) {
  return element('button', { class: `btn sm ${kind}`, 'aria-label': `${label} ${name}`,
    'aria-disabled': isOffline ? 'true' : null, 'data-cmd': line, 'data-key': key, on: { click: event => {
      if (!isOffline) press(event.currentTarget);
    } } }, picture && icon(picture), element('span.clip', label));
}

/**
 * @typedef {object} MenuItem of a row; null for a rule
 * @property {string} label
 * @property {string} line
 * @property {() => void} [press] or `href`
 * @property {string} [href]
 * @property {boolean} [danger]
 * @property {string | null} [why] it cannot be pressed now
 */

/**
 * The menu of a row.
 * @param {string} name
 * @param {(MenuItem | null)[]} items
 * @param {{isOffline: boolean}} context
 */
export function rowMenu(name, items, { isOffline }) {
  const item = (entry, at) => {
    if (!entry) return element('li', element('hr'));
    const { label, line, press, href, danger, why } = entry;
    if (href) return element('li', element('a', { href, 'data-cmd': line }, label));
    const id = why ? `why-${name}-${at}` : null;
    const click = event => {
      if (!isOffline && !why) {
        const menu = event.currentTarget.closest('details');
        menu.open = false;
        find('summary', menu).focus();
        press();
      }
    };
    return element('li',
      element('button', { class: danger ? 'danger' : null, 'aria-disabled': isOffline || why ? 'true' : null,
        'aria-describedby': id, 'data-cmd': line, on: { click } }, label,
        why && element('span.muted.tiny.push', { id }, why)));
  };
  return element('details.menu',
    element('summary.btn.icon.sm.quiet', { 'aria-label': `More for ${name}`, 'data-key': 'more' }, icon('more')),
    element('ul', items.map(item)));
}
