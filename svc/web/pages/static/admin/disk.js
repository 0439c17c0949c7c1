// What each user's disks hold, as the user's own agent measured it, with the sums; and to have it measured again.
import { call } from '../frame/api.js';
import { startAdmin } from './page.js';
import { isVisible, refreshSoon, perform } from '../screen/page.js';
import { command, element, find, replace, setAttribute, empty } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { rowsOfDisk, sumsRow } from './disk_row.js';
import { setCommand } from '../frame/foot.js';
import { createList } from './lists.js';
import { skeletonOf } from '../parts/tables.js';
import { byteSize, counted, time } from '../frame/format.js';
import { ADMIN_CREATE_USER, DISK_MEASURE } from '../generated/actions.js';

const HEADS = ['User', ['Total', 'r'], ['Images', 'r'], ['Copies', 'r'], ['Cache', 'r'], ['Containers', 'r'], [
  'Volumes',
  'r',
], ['Files', 'r'], ['Image quota', 'r'], 'Measured'];
const WHAT =
  'Images: layers with a name, shared ones once. Copies: for images that run as another id. Cache: what only '
  + "builds need. Containers: written in workspaces outside /work. Files: the user's own file roots. Each user's "
  + 'own agent measures, two at a time, and could lie: the figures are for planning.';
const list = createList({ title: 'Disks', heads: HEADS, label: 'Search users', placeholder: 'Name',
  filters: { all: 'All', part: 'Incomplete', never: 'Never measured' }, tests: {
    all: () => true,
    part: user => user.error !== null || user.complete === false,
    never: user => user.measured_at === null,
  }, textsOf: user => [user.name], none: 'No user matches.', foot: WHAT });
const EVERY_MS = 3_000; // while users are measured

const known = { users: [], sums: null, waiting: 0, oldest: null };
let isAsking = false;

async function read(options) {
  const users = [];
  let first = null;
  for (let offset = 0; offset !== null;) {
    const page = await call('GET', `/api/admin/disk?limit=200&offset=${offset}`, options);
    users.push(...page.items);
    first ??= page;
    offset = page.next_offset ?? null;
  }
  const isEnd = known.waiting > 0 && first.waiting === 0;
  Object.assign(known, { users: isEnd ? users : inTheirPlaces(users), sums: first.sums, waiting: first.waiting,
    oldest: first.oldest_measured_at });
}

// The largest first, as the API has them; a row stays where it is until all have been measured again.
function inTheirPlaces(users) {
  const places = new Map(known.users.map(({ name }, at) => [name, at]));
  const placeOf = ({ name }) => places.get(name) ?? users.length;
  return users.toSorted((a, b) => placeOf(a) - placeOf(b));
}

function show() {
  const { users, waiting } = known;
  const isBlank = waiting === 0 && users.every(user => user.measured_at === null && user.error === null);
  setAttribute(find('[data-key=measure]'), 'aria-busy', isAsking || waiting > 0);
  showLede();
  setCommand(['admin disk']);
  if (isBlank) {
    replace(find('#screen'), blank(users.length));
    return;
  }
  if (!find('#screen table')) find('#screen').replaceChildren(list.filtersNow(showList), list.panelNow());
  showList();
}

// In the room that they will take.
function waitingFilters() {
  const waiting = list.filtersNow(showList);
  waiting.inert = true;
  return waiting;
}

function showList() {
  const { users } = known;
  list.show(users, (visible, found) => {
    const sums = found.length === users.length && found.length > 1 ? [sumsRow(known)] : [];
    return [...visible.flatMap(rowsOfDisk), ...sums];
  }, showList);
}

function showLede() {
  const { users, sums, waiting, oldest } = known;
  const age = waiting > 0
    ? `measuring, ${waiting} to go`
    : oldest
    ? ['the oldest figures ', time(oldest, 'ago')]
    : 'not measured yet';
  replace(find('.lede'),
    ...[`${counted(users.length, 'user')}, `, oldest && `${byteSize(sums.total_bytes)}, `, age].flat().filter(Boolean));
}

// Nobody was ever measured, or there is nobody.
function blank(count) {
  const [title, text, cmd] = count === 0
    ? ['No users', 'Accounts are made on the host:', [ADMIN_CREATE_USER]]
    : ['Not measured yet',
      'Each user\'s own agent counts what its disks hold, for at most ten minutes. "Measure again" asks all of '
      + 'them; so does, on the host:', [DISK_MEASURE]];
  return empty(title, element('p', text), command(cmd));
}

async function measure(button) {
  if (!isVisible() || isAsking || known.waiting > 0) return;
  isAsking = true;
  await perform(button, { what: 'Nothing is measured.', done: 'Measuring' }, async () => {
    ({ waiting: known.waiting } = await call('POST', '/api/admin/disk/measure', { body: { users: [] } }));
  });
  isAsking = false;
  show();
}

setInterval(() => {
  if (known.waiting > 0 && !document.hidden && !isOffline()) refreshSoon();
}, EVERY_MS);
find('[data-key=measure]').addEventListener('click', event => measure(event.currentTarget));
await startAdmin({ read, show,
  loading: () => [waitingFilters(), skeletonOf('Disks', HEADS, HEADS.map((_, at) => [at === 0 ? '2' : '1']))],
  failed: 'What the disks hold could not be read.' });
