// The way to an app from another computer.
import { command, element, icon } from '../frame/dom.js';

// The way to a port from this computer: its 127.0.0.1 is the host's.
export function openApp(title, port, ssh) {
  const close = element('button', { class: 'btn', autofocus: true }, 'Close');
  const dialog = element('dialog', { 'aria-labelledby': 'open-h' }, element('div', { class: 'in' },
    element('h2', { id: 'open-h', class: 'ref' }, `Open ${title}`),
    element('p', { class: 'soft' }, 'It listens on ', element('span', { class: 'mono' }, `127.0.0.1:${port.host_port}`), ' of the host. On this computer, keep this running in a terminal:'),
    command(ssh),
    element('p', { class: 'soft' }, 'and open'),
    element('div', { class: 'row' }, element('a', { class: 'btn primary', href: port.url, target: '_blank', rel: 'noreferrer noopener' }, icon('open'), port.url)),
    element('form', { method: 'dialog', class: 'ends' }, close)));
  document.body.append(dialog);
  dialog.addEventListener('close', () => dialog.remove());
  dialog.showModal();
  close.focus();
}
