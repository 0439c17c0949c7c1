// The sign-in screen.
import { call, session } from '../frame/api.js';
import { element, find, notice } from '../frame/dom.js';
import { hostName } from '../frame/frame.js';
import { startFoot } from '../frame/foot.js';
import { destinationOf } from './destination.js';
import { signInForm, signInHelp } from './form.js';
import { commaList } from '../frame/format.js';

const arrive = () => location.replace(destinationOf(location.href));

// Signed in already: the other tab's session is this one's too.
async function isSignedIn() {
  if (!session.secret) return false;
  try {
    await call('GET', '/api/auth/session', { background: true });
    return true;
  } catch (error) {
    if (error.status === 401) session.end();
    return false;
  }
}

// Why the person is here, where a page of this service says so.
const WHY = {
  password: 'Your password has been changed, and all sessions and tokens have ended. Sign in with the new one.',
};

function why() {
  const text = WHY[new URLSearchParams(location.search).get('why')];
  return text
    ? [notice('inset', 'info', element('p', text))]
    : [];
}

async function showVersion() {
  try {
    const { version, commit } = await call('GET', '/api/version');
    find('[data-version]').textContent = `svc ${commaList(version, commit.slice(0, 7))}`;
  } catch { /* the form says what is wrong when it is sent */ }
}

for (const node of document.querySelectorAll('[data-host]')) node.textContent = hostName();
document.title = `Sign in · ${hostName()}`;
startFoot();
if (await isSignedIn()) {
  arrive();
} else {
  const form = signInForm({ done: arrive });
  find('[data-form]').replaceChildren(...why(), form, signInHelp(form));
  find('[name=username]', form).focus();
  showVersion();
}
window.addEventListener('storage', event => {
  if (event.key === 'svc.session' && event.newValue) arrive();
});
