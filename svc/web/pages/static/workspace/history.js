// What happened to a workspace, in sentences: what its owner did, and what others did to it.
import { element } from '../frame/dom.js';
import { duration, reason, time } from '../frame/words.js';

const names = (...words) => words.filter(Boolean).join(', ');
const DID = {
  'workspace.create': () => 'created it',
  'workspace.setup': () => 'set it up',
  'workspace.start': () => 'started it',
  'workspace.stop': () => 'stopped it',
  'workspace.restart': () => 'restarted it',
  'workspace.delete': () => 'deleted it',
  'workspace.edit': ({ keys }) => `edited its ${(keys ?? []).map(key => key.replaceAll('_', ' ')).join(', ') || 'settings'}`,
  'workspace.rename': ({ before, name }) => `renamed it from ${before} to ${name}`,
  'workspace.upgrade': ({ before, after }) => after ? `upgraded it from revision ${before} to ${after}` : 'upgraded it',
  'workspace.extend': ({ hours }) => `kept it from the idle policy for ${hours} h`,
  'workspace.exec': ({ program }) => `ran ${program ?? 'a command'} in it`,
  'workspace.launcher_start': ({ launcher, autostart }) => autostart ? `${launcher} was started with it` : `started ${launcher}`,
  'workspace.launcher_stop': ({ launcher }) => `stopped ${launcher}`,
  'workspace.port_add': ({ port, container_port: inside }) => `added a port${port ? ` ${port}` : ''}${inside ? `, ${inside} inside` : ''}`,
  'workspace.port_remove': ({ port }) => `removed the port ${port}`,
  'terminal.open': () => 'opened a terminal',
  'terminal.attach': () => 'went back to a terminal',
  'terminal.close': () => 'closed a terminal',
};

// The same words for what was tried: `started it` is `to start it`.
const TO_DO = { added: 'add', closed: 'close', created: 'create', deleted: 'delete', edited: 'edit', kept: 'keep', opened: 'open', ran: 'run', removed: 'remove', renamed: 'rename', restarted: 'restart', set: 'set', started: 'start', stopped: 'stop', upgraded: 'upgrade', went: 'go' };

function tried(did) {
  const [verb, ...rest] = did.split(' ');
  return TO_DO[verb] ? `tried to ${[TO_DO[verb], ...rest].join(' ')}` : `tried: ${did}`;
}

// The rows of actions: that of its beginning goes where there is one of its end.
export function whole(rows) {
  const ended = new Set(rows.filter(row => row.outcome !== 'begun').map(row => `${row.request_id} ${row.action}`));
  return rows.filter(row => row.outcome !== 'begun' || !ended.has(`${row.request_id} ${row.action}`));
}

// What svc itself saw: its outcome is a state, not an end.
const SEEN_BY_SVC = {
  'workspace.idle': ({ outcome, detail }) => `it was quiet for ${duration((detail.after_minutes ?? 0) * 60)}${outcome === 'stop' ? ', and is stopped' : ''}`,
  'workspace.launcher_end': ({ detail }) => `${detail.launcher} has ended with ${detail.exit_code ?? '?'}`,
  'workspace.reconcile': ({ outcome, detail }) => `it was found ${outcome}${detail.reason ? `: ${reason(detail.reason, detail.exit_code ?? null)}` : ''}`,
};

export function sentenceOf(row) {
  const { user, via, action, outcome, detail } = row;
  if (SEEN_BY_SVC[action]) return SEEN_BY_SVC[action](row);
  const did = DID[action]?.(detail) ?? action.replace('.', ': ').replaceAll('_', ' ');
  if (action === 'workspace.launcher_start' && detail.autostart) return outcome === 'ok' ? did : `${detail.launcher} was not started with it`;
  const who = via === 'worker' ? 'svc' : user;
  if (outcome === 'begun') return `${who}: ${did}, under way`;
  return outcome === 'ok' ? `${who} ${did}` : `${who} ${tried(did)}`;
}

export function historyTable(rows) {
  const line = row => element('tr', { role: 'row', class: 'plain' },
    element('td', { role: 'cell', class: 'muted small num nw' }, time(row.at, 'ago')),
    element('td', { role: 'cell', class: 'ref' }, sentenceOf(row), !['ok', 'begun'].includes(row.outcome) && !SEEN_BY_SVC[row.action] && element('span', { class: 'is-danger small' }, ` ${row.outcome.replaceAll('_', ' ')}`)),
    element('td', { role: 'cell', class: 'muted small ref' }, names(row.via, row.address)));
  return element('table', { class: 'table dense fold', role: 'table', 'aria-label': 'What happened' }, element('tbody', { role: 'rowgroup' }, whole(rows).slice(0, 6).map(line)));
}
