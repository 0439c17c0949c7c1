// The launchers of a workspace: their states, how a person elsewhere comes to one, and their output.
import { command, element, icon, setAttribute, stateMark } from '../frame/dom.js';
import { hostName } from '../frame/frame.js';
import { copyText } from '../frame/foot.js';

export function launcherState({ state, exit_code: code }) {
  if (state === 'started') return stateMark('running', 'Started');
  if (state === 'exited') return code ? stateMark('failed', `Exited with code ${code}`) : stateMark('stopped', 'Ended');
  return stateMark('stopped', 'Stopped');
}

/** @param {Api.Workspace} record */
export const launcherLog = (record, name) =>
  `/workspaces/${encodeURIComponent(record.name)}/logs?launcher=${encodeURIComponent(name)}`;

/** @param {Api.Workspace} record */
export function logButton(record, { name, title, state }) {
  return element('a.btn.sm.quiet', { href: launcherLog(record, name), 'aria-label': `Log of ${title || name}`,
    key: `log-${name}`, cmd: ['ws logs', record.name, '--launcher', name, state === 'started' && '--follow'] }, 'Log');
}

// The command that forwards a port, to this host as the address bar names it: but for a forwarded page.
export function sshCommand({ ssh }) {
  const isForwarded = /^(localhost$|127\.|::1$)/.test(hostName());
  return isForwarded ? ssh : ssh.replace(/@[^@\s]+$/, `@${hostName()}`);
}

// The button of the way to it, of one that has been started: only what a browser opens is opened.
/** @param {Api.Workspace} record */
export function openButton(record, item) {
  const { name, title, kind } = item, isPage = /^https?$/.test(kind), label = isPage ? 'Open' : 'Connect';
  return element('button.btn.sm', { 'aria-label': `${isPage ? 'Open' : 'Connect to'} ${title || name}`,
    key: `open-${name}`, cmd: sshCommand(item), on: {
      click: async () =>
        (await import('./open_app.js')).openApp(item, { isPage, ssh: sshCommand(item), token: tokenOf(record, item) }),
    } }, isPage && icon('open'), label);
}

// What is opened or run on the host: an address as text, anything else as a command to copy.
export const connectOf = (
  { connect },
) => (connect.includes(' ') ? command(connect) : element('span.mono.small.nw', connect));

const visibleTokens = new Set(); // of the runs whose token the person wants to see; it is kept nowhere else

// The token for logging in: it is copied without being shown, and is in the page only while it is shown.
/** @param {Api.Workspace} record */
export function tokenOf(record, { name, title, token, started_at: run }) {
  if (!token) return null;
  const key = `${name} ${run}`, code = element('code.small.ref');
  const button = (label, does, press) =>
    element('button.btn.link.small', { key: `${does}-token-${name}`, 'aria-label': `${label} of ${title || name}`,
      click: press }, label);
  const show = button('Show token', 'show', () => {
    if (!visibleTokens.delete(key)) visibleTokens.add(key);
    fill();
  });
  const fill = () => {
    const isVisible = visibleTokens.has(key);
    code.textContent = isVisible ? token : '';
    code.hidden = !isVisible;
    show.textContent = isVisible ? 'Hide token' : 'Show token';
    setAttribute(show, 'aria-label', `${show.textContent} of ${title || name}`);
  };
  fill();
  return element('span.row', { 'data-token': name, cmd: ['ws launchers', record.name] }, code,
    button('Copy token', 'copy', () => copyText(token)), show);
}

// The lines of an output as a terminal would leave them: without its commands, and overwritten ones as they ended.
export function plainLines(text) {
  const plain = text.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g, '');
  return plain.split('\n').map(line => line.replace(/\r+$/, '').split('\r').pop()).filter((line, at, lines) =>
    line !== '' || at < lines.length - 1
  );
}
