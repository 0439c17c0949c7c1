// One entry of a folder.
import { element, icon } from '../frame/dom.js';
import { pageOf, argument } from './paths.js';
import { byteSize, time } from '../frame/format.js';
import { spelledOut } from '../shared/unseen.js';

const ICON = { file: 'file', directory: 'files', symlink: 'link', other: 'info' };

// `act` does what the menu says; `choose` is told of the check mark; `barred` has the reason why nothing may be
// changed.
export function rowOf(entry, { root, isChosen, act, choose, barred }) {
  const name = spelledOut(entry.name);
  const check = element('input', { type: 'checkbox', 'aria-label': name, 'data-key': `check-${entry.path}`,
    on: { change: event => choose(entry, event.target.checked) } });
  check.checked = isChosen;
  return element('tr', { tabindex: '-1', 'data-id': entry.path, 'aria-selected': isChosen ? 'true' : null },
    element('td', check),
    element('td', element('span.row.nowrap', icon(ICON[entry.type]), nameOf(entry, root, name), ...notesOf(entry))),
    element('td.r', { 'data-l': 'Size' }, entry.type === 'file' && byteSize(entry.size)),
    element('td.muted.small.num.nw', { 'data-l': 'Changed' }, entry.modified_at && time(entry.modified_at, 'day')),
    element('td.muted.small.mono.mode', { 'data-l': 'Mode' }, entry.mode),
    element('td.c-act', element('div.row', menuOf(entry, name, { root, act, barred }))));
}

function nameOf({ type, path }, root, name) {
  if (type === 'other') return element('span.name.ref', { dir: 'auto' }, name);
  const cmd = `svc fs ${type === 'file' ? 'read' : 'ls'} ${argument(root, path)}`;
  return element('a.name.ref', { dir: 'auto', href: pageOf(root, path), 'data-go': true, 'data-cmd': cmd,
    'data-key': `name-${path}` }, name);
}

function notesOf({ type, target, utf8 }) {
  const notes = [type === 'symlink' && `leads to ${spelledOut(target ?? '')}`,
    type === 'other' && 'a pipe, socket or device', !utf8 && 'bytes that are no UTF-8'];
  return notes.filter(Boolean).map(note => element('span.muted.small.ref', note));
}

// Filled when it is opened: a folder may have thousands of rows.
function menuOf(entry, name, { root, act, barred }) {
  const place = argument(root, entry.path), list = element('ul');
  const does = (kind, label, cmd, more = {}) =>
    element('li', element('button', { 'data-act': kind, 'data-cmd': cmd, ...more, on: { click: () =>
      act(kind, [entry]) } }, label));
  const writes = (kind, label, cmd, more = {}) =>
    does(kind, label, cmd, { 'aria-disabled': barred() ? 'true' : null, title: barred() || null, ...more });
  const fill = () => {
    list.replaceChildren(...[
      entry.type === 'directory' && does('archive', 'Download as .tar.gz', `svc fs archive ${place}`),
      ['file', 'symlink'].includes(entry.type) && does('download', 'Download', `svc fs download ${place}`),
      writes('rename', 'Rename', `svc fs mv ${place} ${argument(root, entry.path, '-NEW')}`),
      writes('move', 'Move', `svc fs mv ${place} ${root}/FOLDER/`),
      element('li', element('hr')),
      writes('remove', 'Remove', `svc fs rm ${place}${entry.type === 'directory' ? ' --recursive' : ''} --yes`, {
        class: 'danger',
      }),
    ].filter(Boolean));
  };
  const summary = element('summary.btn.icon.sm.quiet', { 'aria-label': `More for ${name}`,
    'data-key': `more-${entry.path}`, on: { click: fill } }, icon('more'));
  return element('details.menu', summary, list);
}
