// The menu of a row, or of a page's head.
import { element, find, icon } from '../frame/dom.js';

/**
 * An item: null is a rule, false is left out; `isClosed` says that it cannot be pressed now.
 * @typedef {{label: any, cmd: any, press?: (button: HTMLElement) => void, href?: string, isClosed?: boolean}
 *   & Record<string, any>} MenuItem with other attributes of an element
 */

/**
 * A menu; what is chosen in it leaves the focus at its summary.
 * @param {string} name
 * @param {(MenuItem | null | false)[]} items
 * @param {{isOff: boolean, kind?: string}} options
 */
export function menuOf(name, items, { isOff, kind = '.sm' }) {
  const item = entry => {
    if (!entry) return element('li', element('hr'));
    const { label, press, isClosed = false, ...more } = entry, isDead = isOff || isClosed;
    if (more.href) return element('li', element('a', more, label));
    const button = element('button', { ...more, 'aria-disabled': isDead, click: () => {
      if (isDead) return;
      node.open = false;
      find('summary', node).focus();
      press(button);
    } }, label);
    return element('li', button);
  };
  const node = element('details.menu',
    element(`summary.btn.icon${kind}.quiet`, { 'aria-label': `More for ${name}`, key: 'more' }, icon('more')),
    element('ul', items.filter(entry => entry !== false).map(item)));
  return node;
}
