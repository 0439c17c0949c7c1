// What the button of a refusal does: the request that its action names, or the page that shows it.
import { call } from '../frame/api.js';
import { find, setAttribute } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { announce, answer, answerRefusal } from '../frame/notices.js';

// What a GET of an action would answer has a page of its own.
function pageOf({ method, path }) {
  const [, ref, rest = ''] = /^\/api\/workspaces\/([^/]+)(\/.*)?$/.exec(path) ?? [];
  if (method !== 'GET' || !ref) return null;
  const launcher = /^\/launchers\/([^/]+)\/logs$/.exec(rest)?.[1];
  if (launcher) return `/workspaces/${ref}/logs?launcher=${launcher}`;
  return { '/logs': `/workspaces/${ref}/logs`, '': `/workspaces/${ref}` }[rest] ?? null;
}

// `act` is what the button of another refusal does, and `done` is told that something may have changed.
export async function nextStep(action, { name, openUpgrade, act, done }) {
  if (pageOf(action)) {
    location.assign(pageOf(action));
    return;
  }
  if (action.method === 'GET' && action.path.endsWith('/upgrade')) {
    openUpgrade();
    return;
  }
  const button = find('[data-answer] [data-key=act]');
  if (!button || button.getAttribute('aria-busy') || isOffline()) return;
  setAttribute(button, 'aria-busy', 'true');
  try {
    await call(action.method, action.path, { body: action.body });
    answer(null);
    announce(`${action.label}: begun`);
  } catch (error) {
    answerRefusal(error, `${name}:`, act);
  }
  done(null);
}
