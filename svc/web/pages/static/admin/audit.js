// The audit: who did what to what, with the hashes that chain its rows, page by page.
import { all, call, outcomes } from '../frame/api.js';
import { startAdmin } from './page.js';
import { auditRow, pairsOf, stampOf } from './audit_row.js';
import { filterControls, filtersFromAddress, keepInAddress, parametersOf, showControls } from './audit_filters.js';
import { element, find, replace, setAttribute, stateMark } from '../frame/dom.js';
import { isOffline, isRead, skeleton } from '../frame/frame.js';
import { hostDialog } from '../parts/dialogs.js';
import { setCommand } from '../frame/foot.js';
import { apiCommand, withQuery } from './commands.js';
import { answer, refused } from '../frame/notices.js';
import { showRows } from '../parts/rows.js';
import { commandText } from '../frame/commands.js';
import { counted, time } from '../frame/format.js';
import { tableHead } from '../parts/tables.js';

const HEADS = [['Row', 'r'], 'When, UTC', 'Who', 'Through', 'Action', 'On', 'Outcome', 'Detail', 'Hash'];
const LIMIT = 50, TYPING_MS = 250, POLL_MS = 15_000;

const filters = filtersFromAddress();
const known = { items: [], total: 0, chain: null, accounts: [] };
// Older pages end at the first page's newest row, so that rows keep their places.
const at = { offset: 0, until: '', newer: 0 };
let asked = 0, typing = null;

const queryOf = () => {
  const parameters = parametersOf(filters);
  return { ...parameters, until: at.until || parameters.until, limit: String(LIMIT),
    offset: at.offset ? String(at.offset) : '' };
};
const pathOf = () => withQuery('/api/admin/audit', queryOf());

async function read(options) {
  const [page, chain, accounts] = await outcomes([call('GET', pathOf(), options),
    call('GET', '/api/admin/audit/chain', options), all('/api/admin/users', options)]);
  if (page.error) throw page.error;
  take(page.value);
  known.chain = chain.value ?? known.chain;
  known.accounts = accounts.value ?? known.accounts;
}

function take({ items, total }) {
  known.items = items;
  known.total = total;
  at.newer = 0;
}

function show() {
  if (!find('[data-filters]')) {
    find('#screen').replaceChildren(filterControls(filters, known.accounts, { changed, typed }),
      element('section.panel', { 'aria-label': 'Audit' },
        element('div.scroll-x', { tabindex: '0', role: 'region', 'aria-label': 'Audit rows' },
          element('table.table.dense.audit', { 'aria-label': 'Audit' }, tableHead(HEADS), element('tbody'))),
        element('p.body.muted', { 'data-none': true, hidden: true }, 'No row matches.'),
        element('footer',
          element('span.muted.small',
            'Rows are only ever added. Two rows of one request are its beginning and its end, shown as one.'),
          element('div.row.push', element('span.muted.small.num', { 'data-where': true, role: 'status' }),
            pageButton('newer', 'Newer', newer), pageButton('older', 'Older', older)))));
  }
  showPage();
}

const pageButton = (key, label, press) => element('button.btn.sm', { key, click: press }, label);

function showPage() {
  const { items, total } = known;
  showRows(find('#screen tbody'),
    pairsOf(items, filters.whole).map(pair => ({ id: String(pair.row.id),
      key: JSON.stringify([pair.row, pair.began?.id ?? 0]), build: () => auditRow(pair) })
    ));
  find('[data-none]').hidden = items.length > 0;
  find('[data-where]').textContent = items.length
    ? `${at.offset + 1} to ${at.offset + items.length} of ${counted(total, 'row')}`
    : '';
  showButtons();
  showControls(filters);
  showChain();
  setCommand(apiCommand('GET', pathOf()));
}

function showButtons() {
  const newerButton = find('[data-key=newer]'), olderButton = find('[data-key=older]');
  newerButton.textContent = at.newer ? `${counted(at.newer, 'newer row')}` : 'Newer';
  setAttribute(newerButton, 'aria-disabled', isOffline() || (at.offset === 0 && at.newer === 0));
  setAttribute(olderButton, 'aria-disabled', isOffline() || at.offset + known.items.length >= known.total);
  setAttribute(newerButton, 'data-cmd',
    apiCommand('GET',
      withQuery('/api/admin/audit', { ...queryOf(), offset: at.offset > LIMIT ? String(at.offset - LIMIT) : '' })));
  setAttribute(olderButton, 'data-cmd',
    apiCommand('GET', withQuery('/api/admin/audit', { ...queryOf(), offset: String(at.offset + LIMIT) })));
}

// ---- the chain: what the doctor verified last, and its ends now ----

function showChain() {
  const lede = find('.lede');
  if (!known.chain) {
    lede.textContent = counted(known.total, 'row');
    return;
  }
  const { level, report, head } = known.chain;
  const [kind, text] =
    { ok: ['ok', 'Chain intact'], warn: ['warn', 'Chain not verified whole'], fail: ['failed', 'Chain broken'] }[level]
      ?? ['warn', 'Chain not verified yet'];
  replace(lede,
    element('span.row', stateMark(kind, text),
      element('span', { class: `small ${report.old ? 'is-warn' : 'muted'}` },
        report.written_at ? ['checked ', time(report.written_at, 'ago'), ', '] : [], counted(head.id, 'row')),
      element('button.btn.link.small', { key: 'chain', cmd: apiCommand('GET', '/api/admin/audit/chain'),
        click: showChainDialog }, 'The chain')));
}

function showChainDialog() {
  const { level, found, remedy, report, head, archived } = known.chain;
  const fact = (title, ...value) => [element('dt', title), element('dd.ref', ...value)];
  const facts = element('dl.facts', ...fact('Found', level ? `${level}: ${found}` : 'not verified yet'),
    ...fact('Checked', ...(report.written_at
      ? [`${stampOf(report.written_at)} UTC`, report.old ? ', more than a day ago' : '']
      : ['never'])), ...fact('Newest row', element('span.mono', `${head.id} ${head.hash}`)), ...(archived.id
      ? fact('In archives', `rows up to ${archived.id}, `, element('span.mono', archived.hash))
      : []));
  hostDialog({
    title: 'The chain of the audit',
    extra: [facts],
    commands: [[remedy, report.command].find(text => /^(sudo )?svc /.test(text)) ?? ['admin doctor']],
    paragraphs: [
      'Each row has the hash over itself and the row before. The doctor verifies the chain on the host and '
      + 'remembers its end, so that rows that were cut off or rewritten since are found. The service does not '
      + 'verify it here: a process that can write the database could say anything.',
    ],
  });
}

function save() {
  hostDialog({
    title: 'Save the audit',
    commands: [`${commandText(apiCommand('GET', pathOf()))} > audit.json`, ['admin audit export', '--out',
      'audit.jsonl'], [
      'admin audit verify',
      'audit.jsonl',
    ], ['admin audit archive', '--before', '2026-01-01', '--out', 'audit-before.jsonl']],
    paragraphs: [
      'What is shown, as JSON; all rows with their hashes, into a file on the host, and how that file is '
      + 'verified; and rows before a day moved out of the database, into a file. An archive is kept by you: '
      + 'nobody sees its rows here any more.',
    ],
  });
}

// ---- looking for others ----

function typed() {
  clearTimeout(typing);
  typing = setTimeout(changed, TYPING_MS);
}

function changed(isCleared) {
  clearTimeout(typing);
  at.offset = 0;
  at.until = '';
  if (isCleared === true && document.activeElement.hasAttribute('data-clear')) find('[data-search]').focus();
  keepInAddress(filters);
  readPage();
}

function older(event) {
  if (event.currentTarget.hasAttribute('aria-disabled')) return;
  if (at.offset === 0 && !parametersOf(filters).until && known.items.length)
    at.until = new Date(Date.parse(known.items[0].at) + 1).toISOString();
  at.offset += LIMIT;
  readPage();
}

function newer(event) {
  if (event.currentTarget.hasAttribute('aria-disabled')) return;
  at.offset = Math.max(0, at.offset - LIMIT);
  if (at.offset === 0) at.until = '';
  readPage();
}

// The page that is asked for; of several that are under way, the last one counts.
async function readPage() {
  const number = asked += 1;
  const table = find('#screen table');
  answer(null);
  setAttribute(table, 'aria-busy', true);
  setCommand(apiCommand('GET', pathOf()));
  try {
    const page = await call('GET', pathOf());
    if (number !== asked) return;
    take(page);
    isRead();
    showPage();
  } catch (error) {
    if (number === asked && error.status !== 401)
      answer(refused(error, { what: 'The rows were not read.', retry: readPage, dismiss: () => answer(null) }));
  } finally {
    if (number === asked) setAttribute(table, 'aria-busy', null);
  }
}

// Whether rows have come: they are counted, and shown when the person asks.
async function pollNewest() {
  if (document.hidden || isOffline() || at.offset > 0 || !find('[data-filters]')) return;
  const number = asked;
  try {
    const { total } = await call('GET', withQuery('/api/admin/audit', { ...queryOf(), limit: '1' }), {
      background: true,
    });
    if (number !== asked || at.offset > 0) return;
    at.newer = filters.span ? at.newer : Math.max(0, total - known.total);
    showButtons();
  } catch { /* asked again soon */ }
}

function skeletonNow() {
  const row = () => element('tr.plain', HEADS.map((_, number) => element('td', skeleton(number === 5 ? '3' : '1'))));
  return element('section.panel', { 'aria-busy': true, 'aria-label': 'Loading audit' },
    element('div.scroll-x',
      element('table.table.dense.audit', { 'aria-hidden': true }, element('tbody', Array.from({ length: 30 }, row)))));
}

setInterval(pollNewest, POLL_MS);
find('[data-key=save]').addEventListener('click', save);
await startAdmin({ read: how => (find('[data-filters]') ? readVisible(how) : read(how)), show: () => {
  if (find('[data-filters]')) {
    showButtons();
    showChain();
  } else show();
}, loading: skeletonNow, failed: 'The audit could not be read.' });

// Rows that are shown stay where they are: only the chain's state is read anew, and what came is counted.
async function readVisible({ background }) {
  known.chain = await call('GET', '/api/admin/audit/chain', { background });
  await pollNewest();
}
