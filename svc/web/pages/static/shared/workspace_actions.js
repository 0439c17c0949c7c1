// What can be done with a workspace as it is, and what is asked before: the list and a workspace's own pages.
import { call } from '../frame/api.js';
import { quoted } from '../frame/format.js';

export const KEEP_HOURS = 12;

export const ACTIONS = {
  start: { doing: 'Starting', done: 'Started', failed: 'was not started',
    send: path => call('POST', `${path}/start`, { body: {} }) },
  stop: { doing: 'Stopping', done: 'Stopped', failed: 'was not stopped',
    send: path => call('POST', `${path}/stop`, { body: {} }) },
  restart: { doing: 'Restarting', done: 'Restarted', failed: 'was not restarted',
    send: path => call('POST', `${path}/restart`, { body: {} }) },
  keep: { doing: 'Keeping', done: `Kept for ${KEEP_HOURS} h`, failed: 'was not kept',
    send: path => call('POST', `${path}/extend`, { body: { hours: KEEP_HOURS } }) },
  delete: { doing: 'Deleting', done: 'Deleted', failed: 'was not deleted', send: path => call('DELETE', path) },
};

// The command that does the same.
export const COMMANDS = {
  start: name => `svc ws start ${quoted(name)}`,
  stop: name => `svc ws stop ${quoted(name)}`,
  restart: name => `svc ws restart ${quoted(name)}`,
  keep: name => `svc ws extend ${quoted(name)} --hours ${KEEP_HOURS}`,
  delete: name => `svc ws delete ${quoted(name)} --yes`,
};

export const QUESTIONS = {
  stop: ({ name, gpus }) => ({ title: `Stop ${name}?`, paragraphs: [
    `Its programs end${
      gpus.length ? `, and its ${gpus.length === 1 ? 'GPU becomes' : 'GPUs become'} free` : ''
    }. Files stay, and so does what was installed in it.`,
  ], action: `Stop ${name}`, keep: 'Let it run', line: COMMANDS.stop(name) }),
  restart: ({ name, gpus }) => ({ title: `Restart ${name}?`,
    paragraphs: [`Its programs end${gpus.length ? '; it keeps its GPUs' : ''}.`], action: `Restart ${name}`,
    keep: 'Let it run', line: COMMANDS.restart(name) }),
  delete: ({ name, status }) => ({ title: `Delete ${name}?`,
    paragraphs: [...(status === 'running' ? ['It runs: its programs are ended first.'] : []),
      'Its container goes, with what was installed in it. Files in /work stay.'], action: `Delete ${name}`,
    line: COMMANDS.delete(name), danger: true }),
};
