// Tables, and what stands for them while they are read.
import { element, find } from '../frame/dom.js';
import { skeleton } from '../frame/frame.js';

// A cell; its label stands before it where the table is folded.
export const cell = (label, kind, ...content) => element('td', { 'data-l': label, class: kind || null }, ...content);

// A table whose roles are written out, since folding changes how it is displayed. `heads`: [title, class].
export function tableOf(label, heads, { kind = 'mid' } = {}) {
  const head = ([title, align]) =>
    element('th', { scope: 'col', class: align || null }, title || element('span.vh', 'Actions'));
  return element('table', { class: `table fold ${kind}`.trim(), 'aria-label': label },
    element('thead', element('tr', heads.map(head))), element('tbody'));
}

// A skeleton of the table, its rows as high as the real ones: `widths` has the widths in each cell.
export function skeletonOf(label, heads, widths, number = 5) {
  const row = () =>
    element('tr.plain', widths.map(cellWidths => element('td', element('div.stack-2', skeleton(...cellWidths)))));
  const table = tableOf(label, heads);
  find('tbody', table).append(...Array.from({ length: number }, row));
  return element('section.panel', { 'aria-busy': 'true', 'aria-label': `Loading ${label.toLowerCase()}` }, table);
}
