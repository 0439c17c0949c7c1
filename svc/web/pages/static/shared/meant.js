// Whether what the button of a refusal does is meant: loaded when it is pressed.
import { ask } from '../frame/asking.js';
import { quoted } from '../frame/words.js';

// What the button of a refusal would end: by the path of its request.
const OF_ACTIONS = {
  'workspaces stop': [
    'Its programs end, and the GPUs that it has become free. Files stay, and so does what was installed in it.',
    'Let it run',
  ],
  'workspaces restart': ['Its programs end; it keeps the GPUs that it has.', 'Let it run'],
  'templates disable': [
    'Nobody can make a workspace from it until it is enabled again. Workspaces that were made from it stay.',
    'Cancel',
  ],
};

// Whether the action of a refusal is to be done: one that ends something is asked about.
export async function isMeant({ label, path }) {
  const [, noun, ref, verb] = /^\/api\/(workspaces|templates)\/([^/]+)\/([a-z]+)$/.exec(path) ?? [];
  const [words, keep] = OF_ACTIONS[`${noun} ${verb}`] ?? [];
  return !words
    || ask({ title: `${label}?`, words: [words], deed: label, keep,
      line: `svc ${noun === 'workspaces' ? 'ws' : 'template'} ${verb} ${quoted(decodeURIComponent(ref))}` });
}
