// One entry of a folder.
import { element, icon } from '../frame/dom.js';
import { loadCommand, moveCommand, openCommand, removeCommand, renameCommand } from './commands.js';
import { pageOf } from './paths.js';
import { byteSize, time } from '../frame/format.js';
import { spelledOut } from '../parts/unseen.js';

const ICON = {
  file: 'M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3',
  directory: 'M1.5 12.5v-9h4.5l1.5 2h7v7z',
  symlink: 'M6.5 9.5a2.5 2.5 0 0 0 3.5 0l3-3a2.5 2.5 0 0 0-3.5-3.5L8.5 4M9.5 6.5a2.5 2.5 0 0 0-3.5 0l-3 3A2.5 2.5 0 0 '
    + '0 6.5 13l1-1',
  other: 'info',
};

// `act` does what the menu says; `choose` is told of the check mark; `barred` has the reason why nothing may be
// changed.
export function rowOf(entry, { root, isChosen, act, choose, barred }) {
  const name = spelledOut(entry.name);
  const check = element('input', { type: 'checkbox', 'aria-label': name, key: `check-${entry.path}`,
    on: { change: event => choose(entry, event.target.checked) } });
  check.checked = isChosen;
  return element('tr', { tabindex: '-1', 'data-id': entry.path, 'aria-selected': isChosen }, element('td', check),
    element('td', element('span.row.nowrap', icon(ICON[entry.type]), nameOf(entry, root, name), ...notesOf(entry))),
    element('td.r', { 'data-l': 'Size' }, entry.type === 'file' && byteSize(entry.size)),
    element('td.muted.small.num.nw', { 'data-l': 'Changed' }, entry.modified_at && time(entry.modified_at, 'day')),
    element('td.muted.small.mono.mode', { 'data-l': 'Mode' }, entry.mode),
    element('td.c-act', element('div.row', menuOf(entry, name, { root, act, barred }))));
}

function nameOf(entry, root, name) {
  const { type, path } = entry;
  if (type === 'other') return element('span.name.ref', { dir: 'auto' }, name);
  return element('a.name.ref', { dir: 'auto', href: pageOf(root, path), 'data-go': true, cmd: openCommand(root, entry),
    key: `name-${path}` }, name);
}

function notesOf({ type, target, utf8 }) {
  const notes = [type === 'symlink' && `leads to ${spelledOut(target ?? '')}`,
    type === 'other' && 'a pipe, socket or device', !utf8 && 'bytes that are no UTF-8'];
  return notes.filter(Boolean).map(note => element('span.muted.small.ref', note));
}

// Filled when it is opened: a folder may have thousands of rows.
function menuOf(entry, name, { root, act, barred }) {
  const list = element('ul');
  const does = (kind, label, cmd, more = {}) =>
    element('li', element('button', { 'data-act': kind, cmd, ...more, click: () => act(kind, [entry]) }, label));
  const writes = (kind, label, cmd, more = {}) =>
    does(kind, label, cmd, { 'aria-disabled': Boolean(barred()), title: barred() || null, ...more });
  const fill = () => {
    list.replaceChildren(...[
      entry.type === 'directory' && does('archive', 'Download as .tar.gz', loadCommand(root, entry)),
      ['file', 'symlink'].includes(entry.type) && does('download', 'Download', loadCommand(root, entry)),
      writes('rename', 'Rename', renameCommand(root, entry)),
      writes('move', 'Move', moveCommand(root, entry)),
      element('li', element('hr')),
      writes('remove', 'Remove', removeCommand(root, entry), {
        class: 'danger',
      }),
    ].filter(Boolean));
  };
  const summary = element('summary.btn.icon.sm.quiet', { 'aria-label': `More for ${name}`, key: `more-${entry.path}`,
    click: fill }, icon('more'));
  return element('details.menu', summary, list);
}
