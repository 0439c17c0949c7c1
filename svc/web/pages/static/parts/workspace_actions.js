// What can be done with a workspace as it is, and what is asked before: the list and a workspace's own pages.
import { call } from '../frame/api.js';
import {
  WORKSPACE_DELETE,
  WORKSPACE_EDIT,
  WORKSPACE_EXTEND,
  WORKSPACE_RESTART,
  WORKSPACE_START,
  WORKSPACE_STOP,
} from '../generated/actions.js';

export const KEEP_HOURS = 12;

const post = (verb, body = {}) => path => call('POST', `${path}/${verb}`, { body });

// A row with `send`, for the path of a workspace; `options` are those of the command.
const action = (row, more) => ({ ...row, failed: `was not ${row.done.toLowerCase()}`, options: [], ...more });

export const ACTIONS = {
  start: action(WORKSPACE_START, { doing: 'Starting', send: post('start') }),
  stop: action(WORKSPACE_STOP, { doing: 'Stopping', send: post('stop') }),
  restart: action(WORKSPACE_RESTART, { doing: 'Restarting', send: post('restart') }),
  keep: action(WORKSPACE_EXTEND, { doing: 'Keeping', done: `Kept for ${KEEP_HOURS} h`, options: [KEEP_HOURS],
    send: post('extend', { hours: KEEP_HOURS }) }),
  delete: action(WORKSPACE_DELETE, { doing: 'Deleting', options: ['--yes'], send: path => call('DELETE', path) }),
};

// The command that does the same.
export const commandOf = (kind, name) => [ACTIONS[kind], name, ...ACTIONS[kind].options];

// The command that edits it by a patch; without one, as it is begun.
export const editCommand = (name, patch = null) =>
  patch ? [WORKSPACE_EDIT, name, JSON.stringify(patch)] : ['ws edit', name, '--file', 'patch.json'];

export const QUESTIONS = {
  stop: ({ name, gpus }) => ({ action: `Stop ${name}`, paragraphs: [
    `Its programs end${
      gpus.length ? `, and its ${gpus.length === 1 ? 'GPU becomes' : 'GPUs become'} free` : ''
    }. Files stay, and so does what was installed in it.`,
  ], keep: 'Let it run', cmd: commandOf('stop', name) }),
  restart: ({ name, gpus }) => ({ action: `Restart ${name}`,
    paragraphs: [`Its programs end${gpus.length ? '; it keeps its GPUs' : ''}.`], keep: 'Let it run',
    cmd: commandOf('restart', name) }),
  delete: ({ name, status }) => ({ action: `Delete ${name}`,
    paragraphs: [...(status === 'running' ? ['It runs: its programs are ended first.'] : []),
      'Its container goes, with what was installed in it. Files in /work stay.'], cmd: commandOf('delete', name),
    danger: true }),
};
