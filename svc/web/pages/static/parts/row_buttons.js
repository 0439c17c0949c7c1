// A button of a row: its label names the row; while the service does not answer it does nothing, and says so.
import { element } from '../frame/dom.js';

export function rowButton(key, label, name, cmd, { isOffline, press, kind = 'quiet' }) {
  const button = element('button', { class: `btn sm ${kind}`, 'aria-label': `${label} ${name}`,
    'aria-disabled': isOffline, cmd, key, click: () => {
      if (!isOffline) press(button);
    } }, element('span.clip', label));
  return button;
}
