// The entries of a folder: in order, as many as are looked at, and those that are chosen.
import { element, find, icon, replace, setAttribute } from '../frame/dom.js';
import { skeleton } from '../frame/frame.js';
import { rowOf } from './row.js';
import { byName, byteSize, counted } from '../frame/format.js';
import { showRows } from '../parts/rows.js';

const STEP = 200;
const SORTS = {
  Name: (a, b) =>
    Number(b.type === 'directory') - Number(a.type === 'directory') || byName(a.name, b.name)
    || (a.name < b.name ? -1 : 1),
  Size: (a, b) => a.size - b.size || SORTS.Name(a, b),
  Changed: (a, b) => (a.modified_at ?? '').localeCompare(b.modified_at ?? '') || SORTS.Name(a, b),
};

// `order` has the paths in their places: they move when the person sorts or searches, and never otherwise.
const list = { entries: new Map(), order: [], visible: STEP, sort: 'Name', descending: false, text: '',
  chosen: new Set(), context: null };

// Show a folder anew, or what has become of the one that is shown.
export function showFolder(place, items, context, { isNew }) {
  list.entries = new Map(items.map(item => [item.path, item]));
  list.context = context;
  if (isNew) {
    Object.assign(list, { visible: STEP, text: '', chosen: new Set() });
    arrangeEntries();
  } else {
    const known = new Set(list.order), isSaid = entry => matchesText(entry) && !known.has(entry.path);
    list.order = [...list.order.filter(path => list.entries.has(path)), ...items.filter(isSaid).map(item => item.path)];
    list.chosen = new Set([...list.chosen].filter(path => list.entries.has(path)));
  }
  if (isNew || !find('[data-folder]', place)) place.replaceChildren(panelOf());
  showEntries();
}

export const chosenEntries = () => list.order.filter(path => list.chosen.has(path)).map(path => list.entries.get(path));
export const unchoose = () => {
  list.chosen.clear();
  showEntries();
};

const matchesText = ({ name }) => name.toLowerCase().includes(list.text.trim().toLowerCase());

function arrangeEntries() {
  const turn = list.descending ? -1 : 1;
  list.order = [...list.entries.values()].filter(matchesText).sort((a, b) => SORTS[list.sort](a, b) * turn).map(entry =>
    entry.path
  );
}

function panelOf() {
  const all = element('input', { type: 'checkbox', key: 'all', 'aria-label': 'Choose all',
    on: { change: event => chooseAll(event.target.checked) } });
  const search = element('input.input', { type: 'search', placeholder: 'Find in this folder',
    'aria-label': 'Find in this folder', 'data-search': true, key: 'search', on: { input: event => {
      list.text = event.target.value;
      list.visible = STEP;
      arrangeEntries();
      showEntries();
    } } });
  return element('section.panel', { 'data-folder': true, 'aria-label': list.context.label },
    element('header', element('label.check.small', all, element('span', { 'data-count': true })),
      element('div.actions', { 'data-chosen': true, hidden: true }),
      element('div.search.push', { 'data-find': true }, icon('search'), search)),
    element('table.table.dense.mid.fold.list', { 'aria-label': list.context.label }, element('thead', headRow()),
      element('tbody')),
    element('p.body.muted', { 'data-none': true, hidden: true }, 'Nothing in this folder is called that.'),
    element('footer', element('span.muted.small', { 'data-more': true }),
      element('span.muted.small', { 'data-foot': true }, list.context.foot)));
}

function headRow() {
  const cell = (title, kind = null) =>
    element('th', { scope: 'col', class: kind,
      'aria-sort': list.sort === title ? list.descending ? 'descending' : 'ascending' : null },
      element('button', { key: `sort-${title}`, click: () => sortBy(title) }, title));
  const plain = (title, kind = null) => element('th', { scope: 'col', class: kind }, element('span.vh', title));
  return element('tr', plain('Choose', 'w-check'), cell('Name'), cell('Size', 'r'), cell('Changed'),
    element('th', { scope: 'col' }, 'Mode'), plain('Actions'));
}

function sortBy(title) {
  list.descending = list.sort === title && !list.descending;
  list.sort = title;
  arrangeEntries();
  replace(find('[data-folder] thead'), headRow());
  showEntries();
}

function chooseAll(isChosen) {
  list.chosen = new Set(isChosen ? list.order : []);
  showEntries();
}

function choose(entry, isChosen) {
  list.chosen[isChosen ? 'add' : 'delete'](entry.path);
  setAttribute(find(`[data-id="${CSS.escape(entry.path)}"]`), 'aria-selected', isChosen);
  showHead();
}

function showEntries() {
  const next = list.order.slice(0, list.visible).map(path => {
    const entry = list.entries.get(path), isChosen = list.chosen.has(path);
    return { id: path,
      key: `${entry.type} ${entry.size} ${entry.modified_at} ${entry.mode} ${isChosen} ${list.context.root}`,
      build: () => rowOf(entry, { ...list.context, isChosen, choose }) };
  });
  showRows(find('[data-folder] tbody'), next);
  find('[data-folder] [data-none]').hidden = next.length > 0;
  showHead();
  showMore();
}

function showHead() {
  const entries = chosenEntries(), many = entries.length;
  const size = entries.reduce((sum, entry) => sum + (entry.type === 'file' ? entry.size : 0), 0);
  const all = find('[data-folder] [data-key=all]');
  all.checked = many > 0 && many === list.order.length;
  all.indeterminate = many > 0 && !all.checked;
  find('[data-folder] [data-count]').textContent = many
    ? `${many} chosen${size ? `, ${byteSize(size)}` : ''}`
    : list.text
    ? `${list.order.length} of ${counted(list.entries.size, 'entry', 'entries')}`
    : counted(list.context.total, 'entry', 'entries');
  const place = find('[data-chosen]');
  place.hidden = many === 0;
  find('[data-find]').hidden = many > 0 && !list.text;
  replace(place, ...(many ? list.context.buttons(entries) : []));
}

// ---- more on demand: when the end is scrolled to, or asked for ----

const watcher = new IntersectionObserver(seenOnes => {
  if (seenOnes.some(one => one.isIntersecting)) more();
}, { rootMargin: '600px' });

function showMore() {
  const rest = list.order.length - list.visible, place = find('[data-more]');
  watcher.disconnect();
  if (rest <= 0) {
    place.replaceChildren();
    return;
  }
  const button = element('button.btn.sm', { key: 'more', click: more }, `Show more: ${rest} are below`);
  replace(place, button);
  watcher.observe(button);
}

function more() {
  list.visible += STEP;
  showEntries();
}

// The same, while it is read.
export function folderSkeleton() {
  const cells = [[], ['3'], ['1'], ['2'], ['1'], []];
  const row = () => element('tr.plain', cells.map(widths => element('td', skeleton(...widths))));
  return element('section.panel', { 'aria-busy': true, 'aria-label': 'Loading the folder' },
    element('header', skeleton('2')),
    element('table.table.dense.mid.fold.list', element('tbody', row(), row(), row(), row(), row(), row())));
}
