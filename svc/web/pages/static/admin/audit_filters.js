// What is looked for in the audit: the API's own filters, in the page's address, and as a command.
import { element, find, icon, setAttribute } from '../frame/dom.js';
import { withQuery } from './commands.js';

const KEYS = ['q', 'user', 'action', 'outcome', 'request_id'];
const NOUNS = ['admin', 'auth', 'fs', 'image', 'operation', 'quota', 'template', 'terminal', 'token', 'user',
  'workspace'];
const OUTCOMES = ['ok', 'begun', 'interrupted', 'unauthenticated', 'owner_only', 'admin_only', 'not_found', 'conflict',
  'validation_failed'];
const SPANS = { '': 'Any time', '1h': 'Last hour', '24h': 'Last 24 hours', '7d': 'Last 7 days', '30d': 'Last 30 days',
  days: 'From a day to a day' };
const SECONDS = { '1h': 3600, '24h': 86_400, '7d': 604_800, '30d': 2_592_000 };
const DAY = /^\d{4}-\d{2}-\d{2}$/;

// What the address says: {q, user, action, outcome, request_id, span, from, to, whole}.
export function filtersFromAddress() {
  const query = new URLSearchParams(location.search);
  const found = Object.fromEntries(KEYS.map(key => [key, query.get(key) ?? '']));
  const from = query.get('from') ?? '', to = query.get('to') ?? '';
  const span = query.get('span') ?? '';
  return { ...found, from: DAY.test(from) ? from : '', to: DAY.test(to) ? to : '', span: span in SPANS ? span : '',
    whole: query.get('rows') === 'all' };
}

export function keepInAddress(filters) {
  const { span, from, to, whole } = filters;
  const days = span === 'days' ? { from, to } : {};
  history.replaceState(null, '',
    withQuery(location.pathname, { ...Object.fromEntries(KEYS.map(key => [key, filters[key]])), span, ...days,
      rows: whole ? 'all' : '' }));
}

// The parameters of the request. A span ends now: it is counted to the minute, so that the command keeps still.
export function parametersOf(filters) {
  const { span, from, to } = filters;
  const found = Object.fromEntries(KEYS.map(key => [key, filters[key].trim()]));
  if (SECONDS[span])
    found.since = `${
      new Date(Math.floor(Date.now() / 60_000) * 60_000 - SECONDS[span] * 1000).toISOString().slice(0, 16)
    }:00Z`;
  if (span === 'days') Object.assign(found, { since: from, until: to && dayAfter(to) });
  return found;
}

// `until` is exclusive: the whole of the last day counts.
function dayAfter(day) {
  return new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);
}

export const isFiltered = filters => KEYS.some(key => filters[key].trim() !== '') || filters.span !== '';

// The controls; `changed()` is called for each change, `typed()` while text is typed.
export function filterControls(filters, accounts, { changed, typed }) {
  const text = (key, label, placeholder, values = null, kind = '') => {
    const control = element('input', {
      class: `input ${kind}`,
      type: key === 'q' ? 'search' : 'text',
      placeholder,
      'aria-label': label,
      value: filters[key],
      list: values ? `of-${key}` : null,
      autocomplete: 'off',
      autocapitalize: 'off',
      spellcheck: 'false',
      maxlength: { q: '128', user: '288' }[key] ?? '64',
      key,
      'data-search': key === 'q',
      on: { input: event => {
        filters[key] = event.target.value;
        typed();
      } },
    });
    return values
      ? [control, element('datalist', { id: `of-${key}` }, values.map(value => element('option', { value })))]
      : [control];
  };
  const days = element('span.row', { 'data-days': true, hidden: filters.span !== 'days' },
    ['from', 'to'].map(key =>
      element('input.input.w-day', { type: 'date', 'aria-label': key === 'from' ? 'From the day' : 'To the day',
        value: filters[key], key, on: { change: event => {
          filters[key] = event.target.value;
          changed();
        } } })
    ));
  const span = element('select.input.auto', { 'aria-label': 'When', key: 'span', on: { change: event => {
    filters.span = event.target.value;
    days.hidden = filters.span !== 'days';
    changed();
  } } },
    Object.entries(SPANS).map(([value, title]) =>
      element('option', { value, selected: value === filters.span }, title)
    ));
  const clear = element('button.btn.link.small', { 'data-clear': true, key: 'clear', click: () => {
    Object.assign(filters, Object.fromEntries(KEYS.map(key => [key, ''])), { span: '' });
    changed(true);
  } }, 'Show all');
  const rows = element('label.check.small',
    element('input', { type: 'checkbox', checked: filters.whole, key: 'whole', on: { change: event => {
      filters.whole = event.target.checked;
      changed();
    } } }), element('span', 'Unfinished calls too'));
  return element('div.filters', { 'data-filters': true },
    element('div.search', icon('search'), ...text('q', 'Search the audit', 'User, action, target, address'),
      element('kbd', '/')), ...text('user', 'User', 'Every user', accounts.map(account => account.name), 'w-filter'),
    ...text('action', 'Action', 'Every action', NOUNS, 'w-filter'),
    ...text('outcome', 'Outcome', 'Every outcome', OUTCOMES, 'w-filter'), span, days, rows, clear);
}

export function showControls(filters) {
  for (const key of [...KEYS, 'from', 'to', 'span']) {
    const control = find(`[data-filters] [data-key="${key}"]`);
    if (control && control !== document.activeElement && control.value !== filters[key]) control.value = filters[key];
  }
  find('[data-days]').hidden = filters.span !== 'days';
  find('[data-clear]').hidden = !isFiltered(filters);
  setAttribute(find('[data-clear]'), 'data-cmd', ['api', 'GET', '/api/admin/audit']);
}
