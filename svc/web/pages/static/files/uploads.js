// The panel of uploads: a row for each, whose bar moves in place. Loaded with the first upload.
import { ask } from '../frame/asking.js';
import { bar, element, find, findAll, icon, keyOfFocus, notice, setAttribute } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { openCommand, uploadCommand } from './commands.js';
import { folderOf, localArgument, pageOf, placeOf, readable, argument } from './paths.js';
import {
  addUploads,
  cancelAll,
  cancelUpload,
  clearEnded,
  goOn,
  goOnNow,
  isUnderWay,
  onUploads,
  rateOf,
  replaceAll,
  skipAll,
  tryAgain,
  uploads,
} from './queue.js';
import { fromChooser, fromDrop } from './dropped.js';
import { byteSize, duration, commaList } from '../frame/format.js';
import { spelledOut } from '../parts/unseen.js';

const ROWS_MAX = 40, DRAW_MS = 250;
const rows = new Map(); // id -> its row, and what it says
let drawing = null, wasUnderWay = false;

onUploads(() => {
  wasUnderWay ||= uploads.items.some(isUnderWay);
  drawing ??= setTimeout(draw, DRAW_MS);
});

// What the screen needs of uploads.
export const desk = { addUploads, goOnNow, onUploads, uploads, fromChooser, fromDrop };

const panel = () => find('[data-uploads]');

// Those that want the person first, then what moves; of a long list not all.
function visibleItems() {
  if (uploads.items.length <= ROWS_MAX) return uploads.items;
  const rank = { asking: 0, failed: 0, running: 1, broken: 1, waiting: 2, done: 3 };
  const chosen = [...uploads.items].sort((a, b) => rank[a.state] - rank[b.state]).slice(0, ROWS_MAX);
  return uploads.items.filter(item => chosen.includes(item));
}

function draw() {
  drawing = null;
  const place = panel();
  place.hidden = uploads.items.length === 0;
  if (!find('table', place)) place.replaceChildren(...panelParts());
  drawHead();
  const visible = visibleItems(), body = find('tbody', place);
  for (const id of [...rows.keys()]) if (!visible.some(item => item.id === id)) rows.delete(id);
  const next = visible.map(rowOfUpload);
  if (next.length !== body.children.length || next.some((row, at) => row !== body.children[at])) keepFocus(body, next);
  const rest = uploads.items.length - visible.length;
  const foot = find('footer', place);
  foot.hidden = rest === 0;
  foot.textContent = `and ${rest} more`;
  sayWhenDone();
}

function panelParts() {
  return [
    element('header', element('h2', { id: 'up-h' }, 'Uploads'),
      element('span.muted.small.num', { 'data-up-count': true }), element('div.actions')),
    element('div.body', { 'data-up-full': true, hidden: true }),
    element('table.table.dense.mid.fold', { 'aria-label': 'Uploads' }, element('tbody')),
    element('footer.muted.small', { hidden: true }),
  ];
}

function keepFocus(body, next) {
  const key = keyOfFocus(body);
  body.replaceChildren(...next);
  if (key) find(`[data-key="${CSS.escape(key)}"]`, body)?.focus();
}

const many = state => uploads.items.filter(item => item.state === state).length;
const plain = (label, act, key, more = {}) =>
  element('button', { class: 'btn sm quiet', key, ...more, click: act }, label);

function drawHead() {
  const done = many('done'), ended = uploads.items.filter(item => !isUnderWay(item)).length;
  find('[data-up-count]', panel()).textContent = `${done} of ${uploads.items.length} done${
    many('failed') ? `, ${many('failed')} failed` : ''
  }`;
  const buttons = [
    many('asking') > 1 && plain(`Replace all ${many('asking')}`, replaceAll, 'up-replace'),
    many('asking') > 1 && plain('Skip all', skipAll, 'up-skip'),
    uploads.items.length - ended > 1
    && plain('Cancel all', () => cancel(uploads.items.filter(isUnderWay), cancelAll), 'up-cancel'),
    ended > 0 && plain('Clear finished', clearEnded, 'up-clear'),
  ].filter(Boolean);
  const place = find('.actions', panel());
  if (place.textContent !== buttons.map(button => button.textContent).join('')) {
    const key = keyOfFocus(place);
    place.replaceChildren(...buttons);
    if (key) findAll('button', place).find(button => button.dataset.key === key)?.focus();
  }
  drawFull();
}

// The disk is full: nothing begins until there is room.
function drawFull() {
  const place = find('[data-up-full]', panel());
  const joined = uploads.full ? `${uploads.full.code} ${uploads.full.message}` : '';
  if (place.dataset.text === joined) return;
  place.dataset.text = joined;
  place.hidden = !joined;
  if (!joined) {
    place.replaceChildren();
    return;
  }
  place.replaceChildren(
    notice('warn', 'warning', { role: 'alert' },
      element('p', element('b', 'There is no room left. '),
        `${spelledOut(uploads.full.message)}. Uploads wait; remove what is not needed here, or old images, and go on.`),
      element('div.row', element('button.btn.sm', { click: goOn }, 'Go on'),
        element('a.btn.sm', { href: '/images', cmd: ['image overview'] }, 'Images')),
      element('span.code', uploads.full.code))
  );
}

// ---- a row ----

function rowOfUpload(item) {
  const here = placeOf(location), isHere = here.root === item.root && here.path === folderOf(item.path);
  const joined = [item.state, item.why, item.error?.code, isOffline(), isHere].join();
  const old = rows.get(item.id);
  if (old?.joined === joined) {
    progressOf(item, old.row);
    return old.row;
  }
  const row = element('tr.plain', { 'data-upload': item.id, 'data-state': item.state },
    element('td.up-name',
      element('div.stack', element('span.mono.small.ref', { title: readable(item.path) }, spelledOut(item.name)),
        !isHere
          && element('a.muted.tiny', { href: pageOf(item.root, folderOf(item.path)), 'data-go': true,
            cmd: openCommand(item.root, { path: folderOf(item.path) }) },
            `in ${item.root}${folderOf(item.path) ? '/' : ''}${readable(folderOf(item.path))}`))),
    element('td', stateOf(item)), element('td.c-act', element('div.row', buttonsOf(item))));
  rows.set(item.id, { row, joined });
  progressOf(item, row);
  return row;
}

const small = (kind, ...content) => element('span', { class: `small ref ${kind}` }, content);

function stateOf(item) {
  if (item.state === 'done')
    return element('span.state.ok.small', `${item.replaced ? 'Replaced' : 'Done'}, ${byteSize(item.size)}`);
  if (item.state === 'running') return element('div.stack', bar(0, 'busy'), small('muted num'));
  if (item.state === 'asking') return small('is-warn', icon('warning'), ' a file of that name is there already');
  if (item.state === 'failed')
    return small('is-danger', icon('warning'), ` ${spelledOut(item.error.message)} `,
      element('span.muted.mono.tiny', commaList(item.error.code, item.error.request_id)));
  return small('muted num');
}

const BROKEN = { offline: 'The connection broke', broke: 'The connection broke',
  'signed out': 'The session has ended' };

function progressOf(item, row) {
  const place = find('.num', row);
  if (!place) return;
  const text = describe(item);
  if (place.textContent !== text) place.textContent = text;
  const rect = find('rect', row);
  if (rect) setAttribute(rect, 'width', `${item.size ? Math.min(100, item.sent / item.size * 100).toFixed(1) : 100}%`);
}

function describe(item) {
  if (item.state === 'waiting') return `waiting, ${byteSize(item.size)}`;
  if (item.state === 'broken') {
    const left = Math.max(0, Math.ceil((item.retryAt - Date.now()) / 1000));
    const when = item.why === 'signed out'
      ? 'once you have signed in'
      : left > 0
      ? `in ${left} s`
      : 'as soon as it can';
    return `${BROKEN[item.why] ?? spelledOut(item.why)}; it begins again from the start ${when}`;
  }
  const rate = rateOf(item);
  if (item.sent >= item.size) return `${byteSize(item.size)} sent, being written to the disk`;
  return commaList(`${byteSize(item.sent)} of ${byteSize(item.size)}`, rate > 0 && `${byteSize(rate)}/s`,
    rate > 0 && `${duration((item.size - item.sent) / rate)} left`);
}

function buttonsOf(item) {
  const to = argument(item.root, item.path), from = localArgument(item.name);
  const button = (label, act, more = {}, kind = '') =>
    element('button', { class: `btn sm ${kind}`, 'aria-label': `${label} ${spelledOut(item.name)}`,
      key: `${item.id}-${label}`, ...more, click: act }, label);
  if (item.state === 'done') return [];
  if (item.state === 'asking') {
    return [
      button('Replace', () => tryAgain(item, { force: true }), { cmd: uploadCommand(from, to, '--force') }),
      button('Skip', () => cancelUpload(item), {}, 'quiet'),
    ];
  }
  if (item.state === 'failed') {
    return [!item.isGone && button('Try again', () => tryAgain(item), { cmd: uploadCommand(from, to) }),
      button('Dismiss', () => cancelUpload(item), {}, 'quiet')];
  }
  return [item.state === 'broken' && item.why !== 'signed out' && !isOffline() && button('Now', goOnNow),
    button('Cancel', () => cancel([item], cancelUpload))];
}

// What has been sent of them is lost.
async function cancel(items, end) {
  const begun = items.filter(item => item.sent > 0), [first] = begun;
  const what = begun.length === 1 ? `the upload of ${spelledOut(first.name)}` : `${begun.length} uploads`;
  if (begun.length
    && !await ask({ title: `Cancel ${what}?`,
      paragraphs: [`What was sent is lost: ${byteSize(begun.reduce((sum, item) => sum + item.sent, 0))}.`],
      action: begun.length === 1 ? 'Cancel the upload' : 'Cancel them',
      keep: begun.length === 1 ? 'Let it go on' : 'Let them go on' })) return;
  end(...items);
}

// Said once, when none is under way any more.
function sayWhenDone() {
  const isBusy = uploads.items.some(isUnderWay);
  if (wasUnderWay && !isBusy && uploads.items.length)
    find('[data-said]').textContent = `Uploads: ${find('[data-up-count]', panel()).textContent}`;
  wasUnderWay = isBusy;
}
