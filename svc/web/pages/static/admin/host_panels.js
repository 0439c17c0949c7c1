// The panels of the host: what the doctor found, service, licence, updates, backups and recovery sets.
import { code, command, element, panel, stateMark } from '../frame/dom.js';
import { stampOf } from './audit_row.js';
import { bytesOf } from './quota_format.js';
import { cell, tableHead } from '../parts/tables.js';
import { counted, time, commaList } from '../frame/format.js';
import { ADMIN_LICENSE_INSTALL, ADMIN_RESTORE, ADMIN_UPDATE_APPLY } from '../generated/actions.js';

const FEW = 5, FRESH_S = 48 * 3600;

export const isCommand = text => /^(sudo |svc )/.test(text);
const remedy = text => (isCommand(text) ? command(text) : element('p.small.soft.ref', text));

const box = (id, title, aside, ...content) => panel(id, title, aside, { 'data-panel': id }, ...content);

const body = (...content) => element('div.body.stack-2', ...content);
const fact = (title, ...value) => [element('dt', title), element('dd.ref', ...value)];
const facts = (...rows) => element('dl.facts', ...rows.flat());

// How old a report is; an old one says so, with the command that renews it.
export function ageOf({ written_at: at, old }) {
  if (at === null) return element('span.small.is-warn', 'no report yet');
  return element('span', { class: `small ${old ? 'is-warn' : 'muted'}` }, old && 'more than a day old: ',
    time(at, 'ago'));
}

const renew = (
  { old, command: text },
) => (old ? [element('p.small.soft', 'The report is renewed on the host:'), remedy(text)] : []);

// Before the first report nothing is known, and nothing is said.
const unknownPanel = (id, title, report) =>
  box(id, title, ageOf(report), body(
    element('p.small.soft', 'What root alone can see is known here once it was reported on the host:'),
    remedy(report.command)
  ));

// What could not be read says so, and leaves the other panels alone.
export function failedPanel(id, title, error) {
  return box(id, title, stateMark('warn', 'Not read'),
    body(element('p.small.ref', `${error.message}`),
      element('p.muted.tiny.mono', commaList(error.code, error.request_id))));
}

// ---- doctor ----

const LEVELS = { fail: ['failed', 'fail'], warn: ['warn', 'warn'], ok: ['ok', 'ok'] };

export function doctorPanel({ report, items }) {
  const count = level => items.filter(item => item.level === level).length;
  const fails = count('fail'), warns = count('warn'), fine = items.filter(item => item.level === 'ok');
  const text = commaList(fails && `${fails} ${fails === 1 ? 'fails' : 'fail'}`,
    warns && `${warns} ${warns === 1 ? 'warns' : 'warn'}`, `${fine.length} ${fine.length === 1 ? 'is' : 'are'} fine`);
  const aside = element('span.row', report.written_at && element('span.muted.small.num', text), ageOf(report));
  if (report.written_at === null) {
    return box('doctor', 'Doctor', aside,
      element('div.empty', element('h3', 'This host was not checked yet'),
        element('p',
          'The doctor runs on the host, as root: it sees what the service may not. Its findings are shown here '
            + 'then, each with its remedy.'), remedy(report.command)));
  }
  const faults = ['fail', 'warn'].flatMap(level => items.filter(item => item.level === level));
  const table = (rows, label) => element('table.table.fold.doctor', { 'aria-label': label }, element('tbody', rows));
  return box('doctor', 'Doctor', aside, faults.length > 0 && table(faults.flatMap(findingRows), 'To be mended'),
    faults.length === 0 && element('div.body', element('p', stateMark('ok', 'Nothing to mend'))),
    element('footer',
      element('details.more', { key: 'fine' },
        element('summary', `${counted(fine.length, 'check')} ${fine.length === 1 ? 'is' : 'are'} fine`),
        table(fine.flatMap(findingRows), 'Fine'))),
    report.old && element('footer', element('div.stack-2', ...renew(report))));
}

function findingRows({ code, level, found, remedy: next }) {
  const [kind, text] = LEVELS[level] ?? ['warn', level];
  const rows = [
    element('tr', { class: next ? 'has-sub plain' : 'plain' }, cell(null, 'w-level', stateMark(kind, text)),
      cell(null, 'name small ref w-code', code), cell(null, 'ref', found)),
  ];
  if (next)
    rows.push(
      element('tr.sub.plain', cell(null, ''), element('td', { colspan: '2' }, remedy(next)))
    );
  return rows;
}

// ---- service, licence, updates ----

export function servicePanel(health, version) {
  const isWell = health.status === 'ok';
  return box('service', 'Service', isWell ? stateMark('ok', 'Healthy') : stateMark('warn', 'Degraded'), body(
    facts(
      fact('Release', element('span.mono', commaList(version.version, version.commit.slice(0, 10)))),
      fact('Schema', String(version.schema)),
      health.db ? fact('Database', health.db) : [],
      health.helper ? fact('Helper', health.helper) : [],
      health.license ? fact('Licence', health.license.replaceAll('_', ' ')) : []
    ),
    ...(health.error
      ? [element('p.small.is-warn.ref', health.error.message),
        ...(health.error.hint ? [remedy(health.error.hint)] : [])]
      : [])
  ));
}

export function licencePanel(licence) {
  const { kind, state: now, days_left: days, holder, id, ends_at: ends, limits, used, problem, request_code: request,
    notices } = licence;
  const left = `${kind === 'trial' ? 'trial' : 'signed'}, ${
    now === 'lapsed' ? 'ended' : `${counted(days, 'day')} left`
  }`;
  const of = (count, most) => `${count} of ${most === null ? 'unlimited' : most}`;
  const text =
    { lapsed: 'Nothing can be created or started. Stop, delete, files, export and backup always work.',
      ending: `After ${
        stampOf(ends).slice(0, 10)
      } nothing can be created or started. Stop, delete, files, export and backup always work.` }[now];
  return box('licence', 'Licence',
    element('span', { class: `tag ${{ active: 'ok', ending: 'warn', lapsed: 'danger' }[now] ?? ''}` }, left), body(
      text && element('p.small.soft', text),
      facts(holder ? fact('Holder', holder) : [], id ? fact('Licence', element('span.mono', id)) : [],
        fact('Until', `${stampOf(ends).slice(0, 16)} UTC`), fact('Users', of(used.users, limits.users)),
        fact('GPUs', of(used.gpus, limits.gpus)), request ? fact('Request code', element('span.mono', request)) : []),
      problem && element('p.small.is-warn.ref', `The installed file is not in force: ${problem}`),
      ...notices.flatMap(
        notice => [element('p.small.is-warn.ref', notice.message), ...(notice.hint ? [remedy(notice.hint)] : [])]
      ),
      element('details.more', { key: 'licence-how' }, element('summary.small', 'Another licence'),
        element('div.stack-2',
          element('p.small.soft',
            'The vendor signs one for the request code; it is checked and put in force on the host.'),
          command(['admin license request']), command([ADMIN_LICENSE_INSTALL])))
    ));
}

export function updatesPanel({ report, updates }) {
  if (!updates) return unknownPanel('updates', 'Updates', report);
  const { installed_version: version, installed_commit: commit, installed_by: by, available, checked_at: checked,
    problem, notes, release_keys: keys, applied_at: applied, outcome, reason, source } = updates;
  return box('updates', 'Updates',
    element('span.row', available ? element('span.tag.busy', `${available} is out`) : stateMark('ok', 'None seen'),
      ageOf(report)), body(
      facts(
        fact('Installed', element('span.mono', commaList(version || by, commit.slice(0, 10)))),
        source ? fact('Source', element('span.mono', source)) : [],
        fact('Asked', checked ? time(checked, 'ago') : 'never'),
        applied ? fact('Last applied', time(applied, 'ago'), `, ${outcome}${reason ? `: ${reason}` : ''}`) : []
      ),
      notes && element('p.small.soft.ref', notes),
      problem && element('p.small.is-warn.ref', problem),
      keys === 0 && element('p.small.soft', 'This build has no key of a vendor: nothing is applied.'),
      command(available && keys > 0 ? [ADMIN_UPDATE_APPLY] : ['admin update check']),
      ...renew(report)
    ));
}

// ---- backups and recovery sets ----

function fewOf(rows, label, head, key) {
  const table = some => element('table.table.dense', { 'aria-label': label }, tableHead(head), element('tbody', some));
  return [element('div.scroll-x', table(rows.slice(0, FEW))), rows.length > FEW
    && element('footer',
      element('details.more', { key }, element('summary.small', `${rows.length - FEW} before`),
        element('div.scroll-x', table(rows.slice(FEW)))))];
}

export function backupsPanel({ report, items }) {
  if (report.written_at === null) return unknownPanel('backups', 'Backups', report);
  const [newest] = items = [...items].sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
  const isFresh = newest && Date.now() - Date.parse(newest.created_at) < FRESH_S * 1000;
  const aside = element('span.row', newest
    ? stateMark(isFresh ? 'ok' : 'warn', element('span', 'newest ', time(newest.created_at, 'ago')))
    : stateMark('warn', 'None'), ageOf(report));
  const row = item =>
    element('tr.plain',
      element('td.small.num', element('span', { title: item.name }, `${stampOf(item.created_at).slice(0, 16)}`)),
      element('td.r.small', bytesOf(item.size_bytes)), element('td.small.ref', item.refused
        ? element('span.is-warn', item.refused)
        : item.host_files
        ? "with the host's files"
        : 'database alone'));
  return box('backups', 'Backups', aside, ...(items.length
    ? fewOf(items.map(row), 'Backups', ['When, UTC', 'Size', 'What'], 'older-backups')
    : [
      body(
        element('p.small.soft',
          'There is no complete snapshot. Without one, a lost disk is the end of all accounts and templates.')
      ),
    ]),
    element('footer',
      element('div.stack-2', command(['admin backup', '--retention', '14']),
        element('p.muted.small', 'Back from one, with the service stopped: ', code([ADMIN_RESTORE, 'PATH'])),
        ...renew(report))));
}

export function setsPanel({ report, items }) {
  if (report.written_at === null) return unknownPanel('sets', 'Recovery sets', report);
  const row = item =>
    element('tr.plain', element('td.mono.small.ref', item.id, element('div.muted.tiny', item.why)),
      element('td.small.ref',
        commaList(item.version || item.kind, item.schema === null ? null : `schema ${item.schema}`)),
      element('td.r.small', bytesOf(item.size_bytes)), element('td', item.applicable
        ? command(['admin rollback apply', item.id])
        : element('div.stack', element('span.small.is-warn.ref', item.problem), item.remedy && remedy(item.remedy))));
  return box('sets', 'Recovery sets',
    element('span.row', element('span.muted.small', counted(items.length, 'set')), ageOf(report)), ...(items.length
      ? fewOf(items.map(row), 'Recovery sets', ['Set', 'Restores', 'Size', 'How'], 'older-sets')
      : [
        body(element('p.small.soft', 'None: one is kept before each upgrade, restore and migration.'),
          command(['admin rollback keep', '--why', 'before a change'])),
      ]), report.old && element('footer', element('div.stack-2', ...renew(report))));
}
