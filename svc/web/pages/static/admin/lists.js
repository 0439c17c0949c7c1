// The lists of administrators, each of one table.
import { element, find } from '../frame/dom.js';
import { filtersOf, hasText, pagesOf, showFilters } from '../parts/lists.js';
import { showRows } from '../parts/rows.js';
import { tableOf } from '../parts/tables.js';

// A panel with a table that is searched: `tests` says of each filter what it lets through, `textsOf` what is searched;
// `again` renders the list when something else is chosen.
export function createList({ title, heads, label, placeholder, filters, tests, textsOf, none, foot = null }) {
  const view = { filter: 'all', text: new URLSearchParams(location.search).get('q') ?? '', pages: 1 };
  const filtersNow = again => filtersOf({ label, placeholder, filters, view, again });
  const panelNow = () =>
    element('section.panel', { 'aria-label': title }, tableOf(title, heads),
      element('p.body.muted', { 'data-none': true, hidden: true }, none),
      element('footer', { 'data-more': true, hidden: true }),
      foot && element('footer', element('span.muted.small', foot)));
  function show(items, rowsOf, again) {
    const found = items.filter(item => tests[view.filter](item) && hasText(view.text, textsOf(item)));
    showRows(find('#screen tbody'), rowsOf(pagesOf(found, find('[data-more]'), view, again), found));
    find('[data-none]').hidden = found.length > 0;
    showFilters(view, name => items.filter(tests[name]).length);
  }
  return { view, filtersNow, panelNow, show };
}
