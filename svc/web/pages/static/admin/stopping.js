// An end to somebody else's workspace, which its owner sees.
import { ask } from '../frame/asking.js';
import { WORKSPACE_STOP } from '../generated/actions.js';
import { QUESTIONS } from '../parts/workspace_actions.js';

export const stopCommand = ({ id, owner }) => [WORKSPACE_STOP, id, '--owner', owner];

export function askToStop({ id, name, owner, gpus }) {
  const question = QUESTIONS.stop({ name, gpus });
  return ask({ ...question, title: `Stop ${name} of ${owner}?`,
    paragraphs: [...question.paragraphs, `${owner} sees that an administrator stopped it.`],
    cmd: stopCommand({ id, owner }) });
}
