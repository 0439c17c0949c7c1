// One row of what users' disks hold, under it what is not in its figures, and the row of the sums.
import { command, element, notice, stateMark } from '../frame/dom.js';
import { adminCommand } from './commands.js';
import { cell } from '../parts/tables.js';
import { sentence } from '../frame/notices.js';
import { byteSize, counted, time } from '../frame/format.js';
import { DISK_MEASURE } from '../generated/actions.js';

const AMOUNTS = [['Total', 'total_bytes'], ['Images', 'images_bytes'], ['Copies', 'mapped_bytes'], ['Cache',
  'cache_bytes'], ['Containers', 'containers_bytes'], ['Volumes', 'volumes_bytes'], ['Files', 'files_bytes']];

export function rowsOfDisk(user) {
  const lack = lackOf(user), key = JSON.stringify(user);
  const rows = [{ id: user.name, key, build: () => diskRow(user, lack) }];
  if (lack) rows.push({ id: `${user.name} lack`, key, build: () => lackRow(user, lack) });
  return rows;
}

// What the figures of a user leave out; null where they are whole, or on their way.
function lackOf({ error, complete, measured_at: at, waiting }) {
  if (waiting) return null;
  if (error !== null) return `${sentence(error)}${at ? ' The figures are those of the last time.' : ''}`;
  return complete === false
    ? 'It is more than that: there are too many files to count in ten minutes, or some are closed.'
    : null;
}

function diskRow(user, lack) {
  const { name, quota_image_bytes: quota, files } = user;
  const amount = ([label, key]) =>
    amountCell(label, user[key], key === 'files_bytes' && files !== null ? counted(files, 'name') : null,
      key === 'total_bytes');
  return element('tr', { tabindex: '-1', class: lack ? 'has-sub' : null },
    cell(null, '', element('span.name.ref', name)), ...AMOUNTS.map(amount),
    cell('Image quota', quota === null ? 'r muted' : 'r', quota === null ? 'no limit' : byteSize(quota)),
    cell('Measured', 'small', measuredOf(user)));
}

// As the command has it; what was not measured is empty, and no zero.
function amountCell(label, bytes, title, isWhole = false) {
  if (bytes === null) return cell(label, 'r');
  const created = cell(label, bytes === 0 ? 'r muted' : 'r',
    isWhole ? element('b', byteSize(bytes)) : bytes === 0 ? '0' : byteSize(bytes));
  if (title) created.title = title;
  return created;
}

function measuredOf({ measured_at: at, waiting, error, complete }) {
  if (waiting) return stateMark('busy', 'Measuring');
  const age = at ? time(at, 'ago') : element('span.muted', 'never');
  return error !== null || complete === false
    ? element('div.stack', stateMark('warn', error !== null ? 'Failed' : 'Incomplete'), age)
    : age;
}

function lackRow({ name }, text) {
  return element('tr.sub.plain',
    element('td', { colspan: '10' },
      notice('warn.inset', 'warning', element('p.small.ref', element('span.vh', `${name}: `), text),
        command(adminCommand(DISK_MEASURE, name)))));
}

export function sumsRow({ sums, oldest, users }) {
  return { id: '(all)', key: JSON.stringify([sums, oldest, users.length]),
    build: () =>
      element('tr.plain', cell(null, '', element('b', `All ${users.length} users`)), ...AMOUNTS.map(([label, key]) =>
        amountCell(label, sums[key], null, key === 'total_bytes')
      ), cell('Image quota', ''),
        cell('Measured', 'small muted', oldest && element('span', 'oldest ', time(oldest, 'ago')))) };
}
