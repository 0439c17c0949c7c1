// What differs between two revisions, as a table with + and − signs.
import { element } from '../frame/dom.js';

const SIGNS = { del: '−', add: '+', same: '' };

const diffRow = (kind, old, fresh, text, { mark = '', id = null } = {}) =>
  element('tr', { class: kind, 'data-mark': mark || null, id }, element('td.ln', old), element('td.ln', fresh),
    element('td.sg', SIGNS[kind] ?? ''), element('td', text));

const hunkRow = (text, id = null) => diffRow('hunk', '', '', text, { id });

// A unified diff as rows; `marks` has the lines with findings, which get anchors.
function rowsOfDiff(diff, name, marks = new Set()) {
  let old = 0, fresh = 0;
  const rows = [], mark = () => marks.has(fresh) ? { mark: 'warn', id: `line-${fresh}` } : {};
  for (const line of diff.split('\n')) {
    const found = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (found) {
      [old, fresh] = [Number(found[1]), Number(found[2])];
      rows.push(hunkRow(`@@ ${name}, from line ${fresh} @@`, rows.length ? null : `diff-${name}`));
    } else if (line.startsWith('+++') || line.startsWith('---')) {
      continue;
    } else if (line.startsWith('+')) {
      rows.push(diffRow('add', '', String(fresh), line.slice(1), mark()));
      fresh++;
    } else if (line.startsWith('-')) {
      rows.push(diffRow('del', String(old++), '', line.slice(1)));
    } else if (line.startsWith(' ')) {
      rows.push(diffRow('same', String(old++), String(fresh), line.slice(1), mark()));
      fresh++;
    } else {
      rows.push(hunkRow(line));
    }
  }
  return rows;
}

// A field before and after, without the lines that are equal at both ends.
function rowsOfField({ field, before, after }) {
  const [old, fresh] = [before, after].map(
    value => (value === null || value === undefined ? ['none'] : JSON.stringify(value, null, 1).split('\n'))
  );
  let head = 0, tail = 0;
  const least = Math.min(old.length, fresh.length);
  while (head < least && old[head] === fresh[head]) head++;
  while (tail < least - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++;
  return [hunkRow(`@@ ${field} @@`, `diff-${field}`),
    ...old.slice(head, old.length - tail).map(text => diffRow('del', '', '', text)),
    ...fresh.slice(head, fresh.length - tail).map(text => diffRow('add', '', '', text))];
}

// The whole difference; a Dockerfile without one before it is all new.
export function diffTable(difference, { marks = new Set(), label = 'Difference' } = {}) {
  const rows = [
    ...(difference.dockerfile ? rowsOfDiff(difference.dockerfile, 'Dockerfile', marks) : []),
    ...difference.fields.flatMap(rowsOfField),
    ...(difference.context ? rowsOfDiff(difference.context, 'build context') : []),
  ];
  if (rows.length === 0) return element('div.body', element('p.muted', 'Nothing differs.'));
  return element('div.scroll-x', { tabindex: '0', role: 'region', 'aria-label': label },
    element('table.diff.code', element('tbody', rows)));
}

// A whole Dockerfile as a difference to nothing.
export const wholeAsDiff = text => ({ fields: [], context: null,
  dockerfile: `@@ -0,0 +1 @@\n${text.replace(/\n$/, '').split('\n').map(line => `+${line}`).join('\n')}` });

// How many lines came and went.
export function countsOf(diff) {
  const lines = (diff ?? '').split('\n').filter(line => !/^(\+\+\+|---)/.test(line));
  return `+${lines.filter(line => line.startsWith('+')).length} −${lines.filter(line => line.startsWith('-')).length}`;
}
