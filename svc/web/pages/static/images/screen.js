// The images screen: disk use, running operations, and each image of the user's store with its size and its users.
import { all, call } from '../frame/api.js';
import { command, drawn, element, find, panel, replace, empty } from '../frame/dom.js';
import { ask } from '../frame/asking.js';
import { askToCancel, sendCancel } from '../parts/cancelling.js';
import { isOffline } from '../frame/frame.js';
import { setCommand, toast } from '../frame/foot.js';
import { announce } from '../frame/notices.js';
import { byName, counted, formatSizeOf } from '../frame/format.js';
import { IMAGE_PRUNE } from '../generated/actions.js';
import { showNow, startPage, perform } from '../screen/page.js';
import { pagesOf } from '../parts/lists.js';
import { showRows } from '../parts/rows.js';
import { skeletonOf, tableOf } from '../parts/tables.js';
import { actionFor, gib, imageRow, nameOfImage, operationRow, removalOf, verbOf } from './row.js';
import { movedOn } from '../parts/progress.js';

const HEADS = ['Image', 'State', 'Needed by', ['Size', 'r'], ['Own layers', 'r'], ['Shared', 'r'], ['Frees', 'r'], ''];
const known = { overview: null, images: [], operations: [], barred: new Set() };
const visible = { order: [], pages: 1 };
let busy = '';

// ---- reading ----

async function read(options) {
  const [overview, images, operations, templates] = await Promise.all([
    call('GET', '/api/images/overview', options),
    all('/api/images', options),
    all('/api/operations?status=queued,running', options),
    all('/api/templates', options).catch(() => []),
  ]);
  const barred = new Set(
    templates.filter(template => template.findings.some(({ code }) => code === 'registry_not_allowed')).map(({ id }) =>
      id
    )
  );
  Object.assign(known, { overview, images, operations, barred });
}

// ---- what the rows are of ----

// A template is named by its name where that is unique, else by its id.
function namesOf(templates) {
  const isOnly = name => known.images.filter(image => image.template?.name === name).length < 2;
  return templates.map(({ id, name }) => isOnly(name) ? name : id);
}

// The images of the store, and those that templates name and the store lacks.
function entries() {
  const found = new Map();
  const stored = new Set();
  for (const one of known.overview.items) {
    const ids = new Set(one.templates.map(template => template.id));
    for (const id of ids) stored.add(id);
    const image = known.images.find(other => ids.has(other.template?.id)) ?? null;
    found.set(one.image_id, { id: one.image_id, templateNames: namesOf(one.templates), ref: nameOfImage(one),
      stored: one, image });
  }
  for (const image of known.images) {
    if (!image.template || stored.has(image.template.id) || image.status === 'ready') continue;
    const id = `${image.template.id} ${image.ref}`;
    found.set(id, { id, templateNames: namesOf([image.template]), ref: image.ref, stored: null, image,
      isBarred: known.barred.has(image.template.id) });
  }
  return found;
}

// Order: in use (largest first), missing, unused.
function rank({ stored, image }) {
  if (!stored) return image.status === 'failed' ? 1 : 2;
  return stored.unused ? 3 : 0;
}

// Rows keep their order; new ones are appended.
function inPlace(found) {
  const fresh = [...found.values()].filter(entry => !visible.order.includes(entry.id));
  fresh.sort((a, b) =>
    rank(a) - rank(b) || (b.stored?.size_bytes ?? 0) - (a.stored?.size_bytes ?? 0) || byName(a.ref, b.ref)
  );
  visible.order = [...visible.order.filter(id => found.has(id)), ...fresh.map(entry => entry.id)];
  return visible.order.map(id => found.get(id));
}

// ---- showing ----

function show() {
  if (!find('[data-list]')) find('#screen').replaceChildren(...frameOfList());
  replace(find('[data-disk]'), disk());
  showHead();
  showUnderWay();
  showImages();
}

function frameOfList() {
  const under = tableOf('Under way', ['Image', 'State', 'For', '']);
  find('thead', under).classList.add('vh');
  return [
    element('div', { 'data-answer': true, hidden: true }),
    element('div', { 'data-disk': true }),
    panel('un-h', 'Under way', null, { 'data-under': true, hidden: true }, under),
    element('section.panel', { 'aria-label': 'Images', 'data-list': true }, tableOf('Images', HEADS, { kind: '' }),
      element('footer', { 'data-more': true, hidden: true })),
    empty('No image yet', { 'data-none': true, hidden: true },
      element('p', 'An image is pulled or built once, into your own store, when a workspace needs it first.'),
      command(['template list'])),
  ];
}

function disk() {
  const { total_bytes: total, reclaimable_bytes: unused, free_bytes: free, quota_bytes: quota } = known.overview;
  const most = Math.max(quota ?? total + free, total, 1), needed = Math.max(0, total - unused);
  const share = bytes => `${Math.max(0, Math.min(100, bytes / most * 100))}%`;
  const left = quota === null ? free : Math.max(0, quota - total);
  return panel('disk-h', 'Disk', element('span.muted.small.num', quota === null
    ? `${gib(total)} of images; ${gib(free)} free`
    : `${formatSizeOf(total, quota)} that your images may take; ${gib(free)} free`),
    element('div.body.stack-2',
      drawn('svg', { class: 'bar tall', 'aria-hidden': true },
        drawn('rect', { x: '0', width: share(needed), height: '100%' }),
        drawn('rect', { class: 'warn', x: share(needed), width: share(unused), height: '100%' })),
      element('div.legend-row', sample('', 'needed ', gib(needed), ''),
        sample('warn', 'unused, at least ', gib(unused), ''),
        sample('soft', quota === null ? 'free ' : 'your quota ', gib(left), quota === null ? '' : ' left'))));
}

const sample = (kind, before, amount, after) =>
  element('span', { class: `sw ${kind}` }, element('span', before, element('b.num', amount), after));

function showHead() {
  const spare = known.overview.items.filter(item => item.unused);
  const why = spare.length || known.overview.unused_volumes
    ? isOffline() ? 'the service does not answer' : ''
    : 'nothing is unused';
  const button = element('button.btn', {
    key: 'prune',
    'aria-disabled': Boolean(why || busy),
    'aria-busy': busy === 'prune',
    'aria-describedby': why ? 'why-prune' : null,
    cmd: [IMAGE_PRUNE, '--yes'],
    click: () => {
      if (!why && !busy) prune(spare);
    },
  }, spare.length ? `Remove unused, ${gib(known.overview.reclaimable_bytes)}` : 'Remove unused');
  replace(find('.head .actions'), button, ...(why ? [element('span.vh', { id: 'why-prune' }, why)] : []));
}

const context = () => ({ isOffline: isOffline(), busy, press });

function showUnderWay() {
  const rows = known.operations.filter(operation => ['pull', 'build', 'setup'].includes(operation.kind));
  find('[data-under]').hidden = rows.length === 0;
  showRows(find('[data-under] tbody'),
    rows.map(operation => ({ id: operation.id, key: JSON.stringify([operation, isOffline(), busy === operation.id]),
      build: () => operationRow(operation, context()) })
    ));
}

function showImages() {
  const list = inPlace(entries());
  find('[data-list]').hidden = list.length === 0;
  find('[data-none]').hidden = list.length > 0;
  const listed = pagesOf(list, find('[data-more]'), visible, showImages);
  showRows(find('[data-list] tbody'),
    listed.map(entry => ({ id: entry.id, key: JSON.stringify([entry, isOffline(), busy === entry.id]),
      build: () => imageRow(entry, context()) })
    ));
}

function loading() {
  const skeleton = element('section.panel', { 'aria-busy': true, 'aria-label': 'Loading the disk' },
    element('header', element('span.skel.w3')),
    element('div.body.stack-2', element('span.skel.w4'), element('span.skel.w3')));
  return [skeleton, skeletonOf('Images', HEADS, [['3', '4'], ['2'], ['2'], ['1'], ['1'], ['1'], ['1'], []])];
}

// ---- doing ----

// One action at a time; `what` is the message of a failure.
async function doing(id, what, send, done) {
  if (isOffline() || busy) return;
  busy = id;
  showNow();
  const act = action =>
    doing(id, `${action.label}:`, () => call(action.method, action.path, { body: action.body }), () =>
      `${action.label}: begun`);
  const came = await perform(null, { what, act }, send);
  if (came) { for (const say of [toast, announce]) say(done(came[0])); }
  busy = '';
  showNow();
}

async function press(kind, entry) {
  if (isOffline() || busy) return;
  if (kind === 'cancel') {
    if (await askToCancel(entry))
      await doing(entry.id, `${entry.template?.name ?? entry.subject.name} was not cancelled.`, () =>
        sendCancel(entry.id), () => 'Cancelled');
  } else if (kind === 'get') {
    const { template } = entry.image, row = actionFor(entry.ref);
    await doing(entry.id, `${template.name} was not ${row.done.toLowerCase()}.`, () =>
      call('POST', `/api/templates/${encodeURIComponent(template.id)}/image/${verbOf(entry.ref)}`), () =>
      `${row.label} of ${template.name}: begun`);
  } else {
    await remove(entry);
  }
}

async function remove(entry) {
  const { cmd, path } = removalOf(entry), { stored } = entry, name = entry.templateNames[0] ?? entry.ref;
  const text = [
    `${entry.ref}: it frees at least ${gib(stored.unique_bytes)}${
      stored.shared_bytes ? `; ${gib(stored.shared_bytes)} of it are in other images too, and stay` : ''
    }.`,
    'No workspace needs it; a later use pulls or builds it again.',
  ];
  if (!await ask({ title: `Remove the image of ${name}?`, paragraphs: text, action: 'Remove the image', cmd,
    danger: true }))
    return;
  await doing(entry.id, `${name} was not removed.`, () => call('DELETE', path), () => `Removed ${name}`);
}

const amount = (images, volumes, image = 'image') =>
  [(images || !volumes) && counted(images, image), volumes && counted(volumes, 'anonymous volume')].filter(Boolean)
    .join(' and ');

// The images to be removed, each with the bytes that it frees.
async function prune(spare) {
  const volumes = known.overview.unused_volumes ?? 0;
  const row = item =>
    element('tr.plain', element('td.mono.small.ref', nameOfImage(item)), element('td.r', gib(item.reclaimable_bytes)));
  const table = element('div.in-dialog', element('table.table.dense', element('tbody', spare.slice(0, 100).map(row))),
    spare.length > 100 && element('p.muted.small', `and ${spare.length - 100} more`));
  const text = [
    spare.length
    && `No workspace, container or operation needs ${
      spare.length === 1 ? 'this image' : 'these images'
    }. It frees at least ${gib(known.overview.reclaimable_bytes)}; a later use pulls or builds ${
      spare.length === 1 ? 'it' : 'them'
    } again.`,
    volumes && 'An anonymous volume has the data of a container that is gone, from a VOLUME of its image.',
  ].filter(Boolean);
  const sure = ask({ title: `Remove ${amount(spare.length, volumes, 'unused image')}?`, paragraphs: text,
    action: `Remove ${amount(spare.length, volumes)}`, cmd: [IMAGE_PRUNE, '--yes'], danger: true });
  find('dialog[open] .cmd').before(table);
  if (!await sure) return;
  await doing('prune', 'The unused images were not removed.', () => call('POST', '/api/images/prune'),
    ({ removed, freed_bytes: freed, removed_volumes: volumes }) =>
      `Removed ${amount(removed.length, volumes)}, ${gib(freed)}`);
}

// ---- live ----

const WHOLE = ['operation.', 'image.', 'workspace.created', 'workspace.deleted', 'workspace.updated', 'template.'];

// Progress of a pull or build is rendered from its event; every other event reads the lists again.
function wants({ type, subject, data }) {
  const at = known.operations.findIndex(operation => operation.id === subject?.id);
  if (type !== 'operation.progress' || at < 0) return WHOLE.some(start => type.startsWith(start));
  known.operations[at] = movedOn(known.operations[at], data);
  showUnderWay();
  return false;
}

setCommand(['image overview']);
await startPage({ read, show, loading, wants,
  failed: error => error.status === 403 ? 'There are no images here for you.' : 'Your images could not be read.' });
