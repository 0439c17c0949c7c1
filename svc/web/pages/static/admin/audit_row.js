// One row of the audit, and all of it in a dialog.
import { element, stateMark } from '../frame/dom.js';
import { hostDialog } from '../parts/dialogs.js';
import { apiCommand, json, withQuery } from './commands.js';
import { duration } from '../frame/format.js';

const DETAIL_MOST = 160;

// Merge the `begun` row of an action into its outcome row.
export function pairsOf(items, isWhole) {
  if (isWhole) return items.map(row => ({ row, began: null }));
  const begun = new Map(items.filter(row => row.outcome === 'begun').map(row => [keyOf(row), row]));
  const ended = new Set(items.filter(row => row.outcome !== 'begun' && begun.has(keyOf(row))).map(keyOf));
  return items.filter(row => row.outcome !== 'begun' || !ended.has(keyOf(row)))
    .map(row => ({ row, began: row.outcome === 'begun' ? null : begun.get(keyOf(row)) ?? null }));
}

const keyOf = ({ request_id: request, action, target }) => JSON.stringify([request, action, target]);

export const stampOf = iso => new Date(iso).toISOString().slice(0, 19).replace('T', ' ');
const kindOf =
  outcome => (outcome === 'ok' ? 'ok' : outcome === 'begun' ? 'busy' : outcome === 'interrupted' ? 'warn' : 'failed');

export function auditRow({ row, began }) {
  const { id, at, user, action, target, target_name: name, target_owner: owner, outcome, hash } = row;
  const took = began && (Date.parse(at) - Date.parse(began.at)) / 1000;
  const cell = (kind, ...content) => element('td', { class: kind || null }, ...content);
  return element('tr', { tabindex: '-1' },
    cell('r',
      element('button.btn.link.tiny.num', { 'aria-label': `Row ${id}`, cmd: commandOf(row), key: 'row',
        click: () => showRow(row, began) }, String(id))),
    cell('muted small num nw', element('time', { datetime: at, title: `${stampOf(at)} UTC` }, stampOf(at))),
    cell('name small ref', user), cell('muted small ref', throughOf(row)), cell('mono small ref', action),
    cell('mono small ref', name || target, name && name !== target && element('div.muted.tiny', target),
      owner && element('div.muted.tiny', `of ${owner}`)),
    cell('', stateMark(kindOf(outcome), outcome),
      took !== null && took >= 1 && element('div.muted.tiny', `took ${duration(took)}`)),
    cell('muted tiny mono ref', ...detailOf(row.detail)),
    cell('muted tiny mono nw', element('span', { title: hash }, shortHash(hash))));
}

const shortHash = hash => (hash.length > 8 ? `${hash.slice(0, 4)}…${hash.slice(-2)}` : hash);
const commandOf = ({ request_id: request }) =>
  apiCommand('GET', withQuery('/api/admin/audit', { request_id: request }));

function throughOf({ via, address, detail }) {
  const token = via === 'token' && typeof detail.token === 'string' ? ` ${detail.token}` : '';
  return `${via}${token}${address ? ` ${address}` : ''}`;
}

function detailOf(detail) {
  const text = Object.entries(detail).map(([key, value]) =>
    `${key} ${typeof value === 'string' ? value : JSON.stringify(value)}`
  ).join(', ');
  return [text.length > DETAIL_MOST ? `${text.slice(0, DETAIL_MOST)}…` : text];
}

// The dialog of one row: all fields, the whole hash, the `begun` row.
function showRow(row, began) {
  const fact = (title, value, kind = 'mono ref') => (value === '' || value === null
    ? []
    : [element('dt', title), element('dd', { class: kind }, value)]);
  const facts = element('dl.facts', ...fact('When', `${row.at}`),
    ...(began ? fact('Began', `${began.at}, row ${began.id}`) : []), ...fact('Who', row.user),
    ...fact('Through', [row.via, row.address].filter(Boolean).join(' ')), ...fact('Action', row.action),
    ...fact('On', row.target), ...fact('Its name then', row.target_name), ...fact('Whose', row.target_owner),
    ...fact('Outcome', row.outcome), ...fact('Request', row.request_id),
    ...fact('Detail', Object.keys(row.detail).length ? json(row.detail) : ''), ...fact('Hash', row.hash),
    ...(began ? fact('Hash of the beginning', began.hash) : []));
  hostDialog({ title: `Row ${row.id}`, paragraphs: [], extra: [facts],
    commands: row.request_id ? [commandOf(row)] : [] });
}
