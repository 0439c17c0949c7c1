// What happened to a workspace, in sentences: what its owner did, and what others did to it.
import { element } from '../frame/dom.js';
import { duration, time } from '../frame/format.js';
import { reason } from '../parts/reasons.js';
import { editedText } from '../parts/edited_fields.js';

const THROUGH = { admin: 'svc admin', session: 'browser', socket: 'command line', worker: 'svc' };
const names = (...text) => text.filter(Boolean).join(', ');
const DID = {
  'workspace.create': () => 'created it',
  'workspace.setup': () => 'set it up',
  'workspace.start': () => 'started it',
  'workspace.stop': () => 'stopped it',
  'workspace.restart': () => 'restarted it',
  'workspace.delete': () => 'deleted it',
  'workspace.edit': ({ keys }) => `edited its ${editedText(keys) || 'settings'}`,
  'workspace.rename': ({ before, name }) => before && name ? `renamed it from ${before} to ${name}` : 'renamed it',
  'workspace.upgrade': ({ before, after }) =>
    before && after ? `upgraded it from revision ${before} to ${after}` : 'upgraded it',
  'workspace.extend': ({ hours }) => `kept it from the idle policy${hours ? ` for ${hours} h` : ''}`,
  'workspace.exec': ({ program }) => `ran ${program ?? 'a command'} in it`,
  'workspace.launcher_start': ({ launcher, autostart }) =>
    autostart ? `${launcher ?? 'an app'} was started with it` : `started ${launcher ?? 'an app'}`,
  'workspace.launcher_stop': ({ launcher }) => `stopped ${launcher ?? 'an app'}`,
  'workspace.port_add': ({ port, container_port: inside }) =>
    `added a port${port ? ` ${port}` : ''}${inside ? `, ${inside} inside` : ''}`,
  'workspace.port_remove': ({ port }) => port ? `removed the port ${port}` : 'removed a port',
  'terminal.open': () => 'opened a terminal',
  'terminal.close': () => 'closed a terminal',
};

// The same words for what was tried: `started it` is `to start it`.
const TO_DO = { added: 'add', closed: 'close', created: 'create', deleted: 'delete', edited: 'edit', kept: 'keep',
  opened: 'open', ran: 'run', removed: 'remove', renamed: 'rename', restarted: 'restart', set: 'set', started: 'start',
  stopped: 'stop', upgraded: 'upgrade' };

function tried(did) {
  const [verb, ...rest] = did.split(' ');
  return TO_DO[verb] ? `tried to ${[TO_DO[verb], ...rest].join(' ')}` : `tried: ${did}`;
}

const IS_NOISE = ['terminal.attach']; // each look at a terminal makes one

// The rows of actions, newest first: one of its beginning and its end, which has from its beginning how it was asked.
export function whole(rows) {
  const keyOf = row => `${row.request_id} ${row.action}`;
  const visible = rows.filter(row => !IS_NOISE.includes(row.action));
  const begun = new Map(visible.filter(row => row.outcome === 'begun').map(row => [keyOf(row), row]));
  const ended = new Set(visible.filter(row => row.outcome !== 'begun').map(keyOf));
  return visible.filter(row => row.outcome !== 'begun' || !ended.has(keyOf(row))).map(row => {
    const start = row.outcome === 'begun' || !row.request_id ? null : begun.get(keyOf(row));
    return start ? { ...row, via: start.via, address: start.address, detail: { ...start.detail, ...row.detail } } : row;
  });
}

// What svc itself saw: its outcome is a state, not an end.
const SEEN_BY_SVC = {
  'workspace.idle': ({ outcome, detail }) =>
    `it was quiet for ${duration((detail.after_minutes ?? 0) * 60)}${outcome === 'stop' ? ', and is stopped' : ''}`,
  'workspace.launcher_end': ({ detail }) =>
    `${detail.launcher ?? 'an app'} has ended${Number.isInteger(detail.exit_code) ? ` with ${detail.exit_code}` : ''}`,
  'workspace.reconcile': ({ outcome, detail }) =>
    `it was found ${outcome}${detail.reason ? `: ${reason(detail.reason, detail.exit_code ?? null)}` : ''}`,
};

export function sentenceOf(row) {
  const { user, via, action, outcome, detail } = row;
  if (SEEN_BY_SVC[action]) return SEEN_BY_SVC[action](row);
  const did = DID[action]?.(detail) ?? action.replace('.', ': ').replaceAll('_', ' ');
  if (action === 'workspace.launcher_start' && detail.autostart)
    return outcome === 'ok'
      ? did
      : `${detail.launcher ?? 'an app'} was not started with it`;
  const who = via === 'worker' ? 'svc' : user;
  if (outcome === 'begun') return `${who}: ${did}, under way`;
  return outcome === 'ok' ? `${who} ${did}` : `${who} ${tried(did)}`;
}

export function historyTable(rows) {
  const line = row =>
    element('tr.plain', element('td.muted.small.num.nw', time(row.at, 'ago')),
      element('td.ref', sentenceOf(row), !['ok', 'begun'].includes(row.outcome) && !SEEN_BY_SVC[row.action]
        && element('span.is-danger.small', ` ${row.outcome.replaceAll('_', ' ')}`)),
      element('td.muted.small.ref', names(THROUGH[row.via] ?? row.via, row.address)));
  return element('table.table.dense.fold', { 'aria-label': 'What happened' },
    element('tbody', whole(rows).slice(0, 6).map(line)));
}
