// Confirmation of a refusal's action; loaded when its button is pressed.
import { ask } from '../frame/asking.js';
import { TEMPLATE_DISABLE, WORKSPACE_RESTART, WORKSPACE_STOP } from '../generated/actions.js';

// The row, paragraph and Cancel label by noun and verb of the request's path.
const OF_ACTIONS = {
  'workspaces stop': [WORKSPACE_STOP,
    'Its programs end, and the GPUs that it has become free. Files stay, and so does what was installed in it.',
    'Let it run'],
  'workspaces restart': [WORKSPACE_RESTART, 'Its programs end; it keeps the GPUs that it has.', 'Let it run'],
  'templates disable': [TEMPLATE_DISABLE,
    'Nobody can make a workspace from it until it is enabled again. Workspaces that were made from it stay.', 'Cancel'],
};

// Resolves to true unless the user declines an action that ends something.
export async function isMeant({ label, path }) {
  const [, noun, ref, verb] = /^\/api\/(workspaces|templates)\/([^/]+)\/([a-z]+)$/.exec(path) ?? [];
  const [row, text, keep] = OF_ACTIONS[`${noun} ${verb}`] ?? [];
  return !row || ask({ action: label, paragraphs: [text], keep, cmd: [row, decodeURIComponent(ref)] });
}
