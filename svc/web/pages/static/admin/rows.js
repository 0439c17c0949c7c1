// Lists of the administration: rows keep their places, long lists are shown piece by piece.
import { element, find, findAll, icon, setAttribute } from '../frame/dom.js';
import { skeleton } from '../frame/frame.js';
import { counted } from '../frame/words.js';

const PIECE = 200; // rows that are built at once

const said = new WeakMap(); // row -> what it shows

// While a button is held down no row is replaced: the press would be lost.
const held = { is: false, owed: new Set() };
document.addEventListener('pointerdown', () => { held.is = true; });
for (const name of ['pointerup', 'pointercancel']) document.addEventListener(name, () => setTimeout(letGo));

function letGo() {
  held.is = false;
  for (const show of held.owed) show();
  held.owed.clear();
}

export const cell = (label, kind, ...content) => element('td', { role: 'cell', 'data-l': label, class: kind || null }, ...content);
export const state = (kind, word) => element('span', { class: `state ${kind}` }, word);

// Show `rows`, each {id, says, build}: one that says what it said stays the very element that it was.
export function showRows(body, rows) {
  if (held.is) { held.owed.add(() => showRows(body, rows)); return; }
  const old = new Map([...body.children].map(row => [row.dataset.id, row]));
  const next = rows.map(({ id, says, build }) => {
    const before = old.get(id);
    if (before && said.get(before) === says) return before;
    const fresh = build();
    setAttribute(fresh, 'data-id', id);
    said.set(fresh, says);
    return before ? takeOver(before, fresh) : fresh;
  });
  next.forEach((row, at) => { if (body.children[at] !== row) body.insertBefore(row, body.children[at] ?? null); });
  while (body.children.length > next.length) body.lastElementChild.remove();
}

function takeOver(before, fresh) {
  const hadFocus = before.contains(document.activeElement);
  const key = hadFocus ? document.activeElement.dataset.key : null;
  const isOpen = find('details[open]', before) !== null;
  before.replaceWith(fresh);
  if (isOpen) find('details', fresh)?.setAttribute('open', '');
  if (hadFocus) ((key && find(`[data-key="${CSS.escape(key)}"]`, fresh)) || fresh).focus();
  return fresh;
}

// A table whose roles are written out, since folding changes how it is displayed. `heads`: [title, class].
export function tableOf(label, heads, { kind = 'mid' } = {}) {
  const head = ([title, align]) => element('th', { role: 'columnheader', scope: 'col', class: align || null }, title || element('span', { class: 'vh' }, 'Actions'));
  return element('table', { class: `table fold ${kind}`, role: 'table', 'aria-label': label },
    element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, heads.map(head))), element('tbody', { role: 'rowgroup' }));
}

// The same while it is read, its rows as high as they will be: `widths` has the bones of each cell.
export function bonesOf(label, heads, widths, number = 5) {
  const row = () => element('tr', { class: 'plain' }, widths.map(cellWidths => element('td', {}, element('div', { class: 'stack-2' }, skeleton(...cellWidths)))));
  const table = tableOf(label, heads);
  find('tbody', table).append(...Array.from({ length: number }, row));
  return element('section', { class: 'panel', 'aria-busy': 'true', 'aria-label': `Loading ${label.toLowerCase()}` }, table);
}

// As much of a long list as is shown, and a button for more.
export function pieceOf(items, place, shown, again) {
  const most = shown.pieces * PIECE;
  place.hidden = items.length <= most;
  if (!place.firstChild) place.append(element('span', { class: 'muted small' }), element('button', { class: 'btn sm', type: 'button', 'data-key': 'piece', on: { click: () => { shown.pieces += 1; again(); } } }));
  place.firstChild.textContent = `${Math.min(most, items.length)} of ${counted(items.length, 'row')}`;
  place.lastChild.textContent = `Show ${Math.min(PIECE, Math.max(0, items.length - most))} more`;
  return items.slice(0, most);
}

// A search field and the filters beside it; `again` shows what is chosen.
export function filtersOf({ label, placeholder, filters, shown, again }) {
  const search = element('input', { class: 'input', type: 'search', placeholder, 'aria-label': label, value: shown.text, 'data-search': true, 'data-key': 'search', on: { input: event => { shown.text = event.target.value; shown.pieces = 1; again(); } } });
  const button = ([name, title]) => element('button', { type: 'button', 'data-filter': name, 'data-key': `filter-${name}`, 'aria-pressed': String(shown.filter === name), on: { click: () => { shown.filter = name; shown.pieces = 1; again(); } } }, title, ' ', element('span', { class: 'muted num' }));
  return element('div', { class: 'filters' }, element('div', { class: 'search' }, icon('search'), search, element('kbd', {}, '/')),
    element('div', { class: 'seg', role: 'group', 'aria-label': 'Show' }, Object.entries(filters).map(button)));
}

export function showFilters(shown, countOf) {
  for (const button of findAll('[data-filter]')) {
    setAttribute(button, 'aria-pressed', String(button.dataset.filter === shown.filter));
    find('.num', button).textContent = String(countOf(button.dataset.filter));
  }
}

// Whether one of the parts has the text that is searched for.
export function saysText(text, parts) {
  const wanted = text.trim().toLowerCase();
  return parts.some(part => (part ?? '').toLowerCase().includes(wanted));
}

// A button of a row: its label names the row; while the service is away it does nothing, and says so.
export function rowButton(key, label, name, line, { isAway, press, kind = 'quiet', picture = null }) {
  return element('button', { class: `btn sm ${kind}`, type: 'button', 'aria-label': `${label} ${name}`, 'aria-disabled': isAway ? 'true' : null, 'data-cmd': line, 'data-key': key, on: { click: event => { if (!isAway) press(event.currentTarget); } } }, picture && icon(picture), element('span', { class: 'clip' }, label));
}

// The menu of a row. `items`: null for a rule, else {label, line, press or href, danger, why: why it cannot be now}.
export function rowMenu(name, items, { isAway }) {
  const item = (entry, at) => {
    if (!entry) return element('li', {}, element('hr'));
    const { label, line, press, href, danger, why } = entry;
    if (href) return element('li', {}, element('a', { href, 'data-cmd': line }, label));
    const id = why ? `why-${name}-${at}` : null;
    const click = event => { if (!isAway && !why) { const menu = event.currentTarget.closest('details'); menu.open = false; find('summary', menu).focus(); press(); } };
    return element('li', {}, element('button', { type: 'button', class: danger ? 'danger' : null, 'aria-disabled': isAway || why ? 'true' : null, 'aria-describedby': id, 'data-cmd': line, on: { click } }, label,
      why && element('span', { class: 'muted tiny push', id }, why)));
  };
  return element('details', { class: 'menu' }, element('summary', { class: 'btn icon sm quiet', 'aria-label': `More for ${name}`, 'data-key': 'more' }, icon('more')), element('ul', {}, items.map(item)));
}
