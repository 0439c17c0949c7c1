// Tables, and what stands for them while they are read.
import { element, find } from '../frame/dom.js';
import { skeleton } from '../frame/frame.js';

// A cell; its label stands before it where the table is folded.
export const cell = (label, kind, ...content) => element('td', { 'data-l': label, class: kind || null }, ...content);

// The head of a table: its titles, or [title, class]; one without a title is of what can be done.
export function tableHead(heads) {
  const head = entry => {
    const [title, align] = [entry].flat();
    return element('th', { scope: 'col', class: align }, title || element('span.vh', 'Actions'));
  };
  return element('thead', element('tr', heads.map(head)));
}

// A table that is folded where the window is narrow.
export function tableOf(label, heads, { kind = 'mid' } = {}) {
  return element('table', { class: `table fold ${kind}`.trim(), 'aria-label': label }, tableHead(heads),
    element('tbody'));
}

// A skeleton of the table, its rows as high as the real ones: `widths` has the widths in each cell.
export function skeletonOf(label, heads, widths, number = 5) {
  const row = () =>
    element('tr.plain', widths.map(cellWidths => element('td', element('div.stack-2', skeleton(...cellWidths)))));
  const table = tableOf(label, heads);
  find('tbody', table).append(...Array.from({ length: number }, row));
  return element('section.panel', { 'aria-busy': true, 'aria-label': `Loading ${label.toLowerCase()}` }, table);
}
