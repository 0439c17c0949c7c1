// The end of an operation before it is done: its command, the question before, and the request.
import { call } from '../frame/api.js';
import { ask } from '../frame/asking.js';
import { OPERATION_CANCEL } from '../generated/actions.js';

const ENDS = {
  build: 'The build ends, and makes no image.',
  pull: 'The pull ends. What was loaded so far may have to be loaded again.',
  setup: 'The set-up ends, and makes no workspace. What was loaded or built so far may be lost.',
};

export const cancelCommand = id => [OPERATION_CANCEL, id];

export const sendCancel = id => call('POST', `/api/operations/${encodeURIComponent(id)}/cancel`, { body: {} });

export function askToCancel({ id, kind, subject, template }) {
  const what = { build: 'build', pull: 'pull', setup: 'set-up' }[kind] ?? 'operation',
    name = kind === 'setup' ? subject.name : template?.name ?? subject.name;
  return ask({ title: `Cancel the ${what} of ${name}?`, paragraphs: [ENDS[kind] ?? 'It ends where it is.'],
    action: `Cancel the ${what}`, keep: 'Let it run', cmd: cancelCommand(id) });
}
