// The launchers of a workspace: their states, how a browser elsewhere comes to one, and their output.
import { element, icon } from '../frame/dom.js';
import { hostName } from '../frame/frame.js';
import { quoted } from '../frame/words.js';
import { stateMark } from '../workspaces/states.js';

export function launcherState({ state, exit_code: code }) {
  if (state === 'started') return stateMark('running', 'Started');
  if (state === 'exited') return code ? stateMark('failed', `Ended with ${code}`) : stateMark('stopped', 'Ended');
  return stateMark('stopped', 'Stopped');
}

export const launcherLog = (record, name) => `/workspaces/${encodeURIComponent(record.name)}/logs?launcher=${encodeURIComponent(name)}`;

export function logButton(record, { name, title, state }) {
  return element('a', { class: 'btn sm quiet', href: launcherLog(record, name), 'aria-label': `Log of ${title || name}`, 'data-key': `log-${name}`,
    'data-cmd': `svc ws logs ${quoted(record.name)} --launcher ${quoted(name)}${state === 'started' ? ' --follow' : ''}` }, 'Log');
}

// The command that forwards a port, to this host as the address bar names it: but for a forwarded page.
export function sshLine({ ssh }) {
  const isForwarded = /^(localhost$|127\.|::1$)/.test(hostName());
  return isForwarded ? ssh : ssh.replace(/@[^@\s]+$/, `@${hostName()}`);
}

export function openButton({ name, title }, port) {
  return element('button', { class: 'btn sm', type: 'button', 'aria-label': `Open ${title || name}`, 'data-key': `open-${name}`, 'data-cmd': sshLine(port), on: { click: async () => (await import('./open_app.js')).openApp(title || name, port, sshLine(port)) } }, icon('open'), 'Open');
}

// The lines of an output as a terminal would leave them: without its commands, and overwritten ones as they ended.
export function plainLines(text) {
  const plain = text.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g, '');
  return plain.split('\n').map(line => line.replace(/\r+$/, '').split('\r').pop()).filter((line, at, lines) => line !== '' || at < lines.length - 1);
}
