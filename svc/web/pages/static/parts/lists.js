// Lists that are searched, and long: filters, and pages.
import { element, find, findAll, icon, setAttribute } from '../frame/dom.js';
import { counted } from '../frame/format.js';

const PAGE_ROWS = 200; // rows that are built at once

// As much of a long list as is shown, and a button for more.
export function pagesOf(items, place, visible, again) {
  const most = visible.pages * PAGE_ROWS;
  place.hidden = items.length <= most;
  if (!place.firstChild)
    place.append(element('span.muted.small'), element('button.btn.sm', { key: 'more-rows', click: () => {
      visible.pages += 1;
      again();
    } }));
  place.firstChild.textContent = `${Math.min(most, items.length)} of ${counted(items.length, 'row')}`;
  place.lastChild.textContent = `Show ${Math.min(PAGE_ROWS, Math.max(0, items.length - most))} more`;
  return items.slice(0, most);
}

// A search field and the filters beside it; `again` shows what is chosen.
export function filtersOf({ label, placeholder, filters, view, again }) {
  const search = element('input.input', { type: 'search', placeholder, 'aria-label': label, value: view.text,
    'data-search': true, key: 'search', on: { input: event => {
      view.text = event.target.value;
      view.pages = 1;
      again();
    } } });
  const button = ([name, title]) =>
    element('button', { 'data-filter': name, key: `filter-${name}`, 'aria-pressed': String(view.filter === name),
      click: () => {
        view.filter = name;
        view.pages = 1;
        again();
      } }, title, ' ', element('span.muted.num'));
  return element('div.filters', element('div.search', icon('search'), search, element('kbd', '/')),
    element('div.seg', { role: 'group', 'aria-label': 'Show' }, Object.entries(filters).map(button)));
}

export function showFilters(visible, countOf) {
  for (const button of findAll('[data-filter]')) {
    setAttribute(button, 'aria-pressed', String(button.dataset.filter === visible.filter));
    find('.num', button).textContent = String(countOf(button.dataset.filter));
  }
}

// Whether one of the parts has the text that is searched for.
export function hasText(text, parts) {
  const requested = text.trim().toLowerCase();
  return parts.some(part => (part ?? '').toLowerCase().includes(requested));
}
