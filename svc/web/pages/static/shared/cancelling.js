// The question before an operation is cancelled.
import { ask } from '../frame/asking.js';
import { quoted } from '../frame/format.js';

const ENDS = {
  build: 'The build ends, and makes no image.',
  pull: 'The pull ends. What was loaded so far may have to be loaded again.',
  setup: 'The set-up ends, and makes no workspace. What was loaded or built so far may be lost.',
};

export function askToCancel({ id, kind, subject, template }) {
  const what = { build: 'build', pull: 'pull', setup: 'set-up' }[kind] ?? 'operation',
    name = kind === 'setup' ? subject.name : template?.name ?? subject.name;
  return ask({ title: `Cancel the ${what} of ${name}?`, paragraphs: [ENDS[kind] ?? 'It ends where it is.'],
    action: `Cancel the ${what}`, keep: 'Let it run', line: `svc operation cancel ${quoted(id)}` });
}
