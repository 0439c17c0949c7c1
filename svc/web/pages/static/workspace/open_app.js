// The way to an app from another computer.
import { command, element, icon } from '../frame/dom.js';
import { closeButton, openDialog } from '../parts/dialogs.js';

// The way to a launcher's port from this computer: its 127.0.0.1 is the host's. `isPage` says whether a browser opens
// it, `ssh` is the command that forwards it, `token` what copies and shows its token, or null.
export function openApp({ name, title, host_port: port, url, link, connect }, { isPage, ssh, token }) {
  const text = title || name;
  openDialog(isPage ? `Open ${text}` : `Connect to ${text}`,
    element('div.in',
      element('p.soft', 'It listens on ', element('span.mono', `127.0.0.1:${port}`),
        ' of the host. On this computer, keep this running in a terminal:'), command(ssh),
      element('p.soft', isPage ? 'and open' : connect.includes(' ') ? 'and run in another one' : 'and connect to'),
      isPage ? element('div.row', pageLink(url, link)) : command(connect),
      link && element('p.muted.small', 'You are signed in there: its token goes with the address.'), token,
      element('form.ends', { method: 'dialog' }, closeButton())));
}

// The link shows the address without its token, which goes with it only when it is pressed.
function pageLink(url, link) {
  const open = event => {
    event.preventDefault();
    window.open(link, '_blank', 'noopener,noreferrer');
  };
  return element('a.btn.primary', { href: url, target: '_blank', rel: 'noreferrer noopener', key: 'page',
    on: link ? { click: open } : {} }, icon('open'), url);
}
