// What the button of a refusal does: the request that its action names, or the page that shows it.
import { call } from '../frame/api.js';
import { find } from '../frame/dom.js';

// What a GET of an action would answer has a page of its own.
function pageOf({ method, path }) {
  const [, ref, rest = ''] = /^\/api\/workspaces\/([^/]+)(\/.*)?$/.exec(path) ?? [];
  if (method !== 'GET' || !ref) return null;
  const launcher = /^\/launchers\/([^/]+)\/logs$/.exec(rest)?.[1];
  if (launcher) return `/workspaces/${ref}/logs?launcher=${launcher}`;
  return { '/logs': `/workspaces/${ref}/logs`, '': `/workspaces/${ref}` }[rest] ?? null;
}

// `act` is what the button of another refusal does; `perform` is the screen's own.
export async function nextStep(action, { name, openUpgrade, perform, act }) {
  if (pageOf(action)) location.assign(pageOf(action));
  else if (action.method === 'GET' && action.path.endsWith('/upgrade')) openUpgrade();
  else
    await perform(find('[data-answer] [data-key=act]'), { what: `${name}:`, done: `${action.label}: begun`, act },
      () => call(action.method, action.path, { body: action.body }));
}
