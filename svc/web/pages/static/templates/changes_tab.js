// The tab that compares revisions; loaded when it is opened.
import { element, panel } from '../frame/dom.js';
import { refused } from '../frame/notices.js';
import { counted, time } from '../frame/format.js';
import { commandsOf } from './about.js';
import { countsOf, diffTable } from './changes.js';
import { tableHead } from '../parts/tables.js';

// `known`: template, revisions, difference, reference; `compare` is what its choices do.
export function changesPanels(known, { compare, pressable }) {
  const { difference, revisions, template } = known;
  if (revisions.length < 2)
    return [element('p.muted', 'There is one revision: nothing has changed yet.'),
      revisionsTable(known, () => {}, pressable)];
  const choice = (key, title, chosen) =>
    element('label.row.small', title, element('select.input.auto', { key, on: { change: event =>
      compare({ [key]: Number(event.target.value) }) } }, revisions.map(one =>
        element('option', { value: one.revision, selected: one.revision === chosen }, `revision ${one.revision}`)
      )));
  const marks = new Set(
    difference.after === template.revision
      ? template.findings.filter(finding => finding.line).map(finding => finding.line)
      : []
  );
  return [
    panel('diff-h', 'What changed', [choice('from', 'from', difference.before), choice('to', 'to', difference.after),
      difference.dockerfile
      && element('div.actions', element('span.muted.small.num', `Dockerfile ${countsOf(difference.dockerfile)}`))],
      difference.refusal
        ? element('div.body', refused(difference.refusal, { what: 'They could not be compared.' }))
        : diffTable(difference, { marks,
          label: `Difference of revisions ${difference.before} and ${difference.after}` })),
    revisionsTable(known, from => compare({ from, to: revisions[0].revision }), pressable),
  ];
}

// All kept revisions, at most so many.
function revisionsTable({ revisions, reference }, compare, pressable) {
  const cell = (label, ...content) => element('td', { 'data-l': label }, ...content);
  const rows = revisions.slice(0, 200).map(one =>
    element('tr', { tabindex: '-1' },
      cell('Revision', element('b.num', String(one.revision)), one.is_current ? ' ' : '',
        one.is_current && element('span.tag.ok', 'current'), one.is_reviewed ? ' ' : '',
        one.is_reviewed && element('span.tag', 'last enabled')), cell('Made', time(one.created_at, 'ago')),
      cell('Image', element('span.mono.ref.tiny', one.image_ref)),
      cell('Used by', one.workspaces ? counted(one.workspaces, 'workspace') : 'none'),
      element('td.c-act', one.is_current
        ? ''
        : pressable('Compare', { kind: 'sm quiet', cmd: commandsOf(reference).diff(one.revision, revisions[0].revision),
          key: `compare-${one.revision}`, label: `Compare revision ${one.revision} with the current one`, run: () =>
            compare(one.revision) })))
  );
  return panel('revisions-h', 'Revisions', null,
    element('table.table.fold', { 'aria-labelledby': 'revisions-h' },
      tableHead(['Revision', 'Made', 'Image', 'Used by', element('span.vh', 'Compare')]), element('tbody', rows)));
}
