// What every screen of the administration is: for administrators.
import { command, element, find } from '../frame/dom.js';
import { ADMIN_EDIT_USER } from '../generated/actions.js';
import { startPage } from '../screen/page.js';

let signedIn = '';

// Who is signed in.
export const me = () => signedIn;

// Begin a screen as startPage does. Others than administrators are told so, and nothing is asked for them.
export async function startAdmin({ show, ...screen }) {
  return startPage({
    ...screen,
    show: () => {
      if (find('#screen')) show();
      else location.reload();
    }, // an administrator again
    may: ({ user }) => {
      signedIn = user.name;
      return user.superuser || showNoPermission(signedIn);
    },
    gone: error => error.code === 'admin_only' ? showNoPermission('') || '' : null,
    unready: () => {
      if (find('.lede .skel')) find('.lede').replaceChildren();
    },
  });
}

// The one place for who is no administrator, or is none any more. The API refuses anyway.
function showNoPermission(name) {
  find('#main').replaceChildren(
    element('section.empty.dash', { 'data-no-permission': true }, element('h1', 'For administrators'), element('p', name
      ? ['The account ', element('span.mono', name), ' is none.']
      : 'This account is none any more.', ' Administrators are made on the host, by root:'),
      command([ADMIN_EDIT_USER, name, '--superuser']),
      element('a.btn', { href: '/workspaces', cmd: ['ws list'] }, 'Workspaces'))
  );
  return false;
}
