// Uploads: four at once, going on while the person walks about, and after a broken connection by themselves.
//
// The API takes a file whole: what breaks off begins again from its start. A state is one of waiting, running,
// broken (tried again by itself), asking (the name is taken), failed, done.
import { call } from '../frame/api.js';
import { onState } from '../frame/events.js';
import { apiOf, encodedPath, joined, lastOf } from './paths.js';
import { upload } from './sending.js';
import { byteSize } from '../frame/format.js';

const AT_ONCE = 4;
const CHECKED_FROM_BYTES = 1 << 20; // of a larger file it is asked first whether its name is taken
const WAITS = [1, 2, 4, 8, 15, 30], BREAKS = 5;
const SILENT_MS = 75_000, SILENT_END_MS = 300_000, ASLEEP_MS = 150_000, GRACE_MS = 15_000;
const SAMPLE_MS = 6000, USE_MS = 600_000;

export const uploads = { items: [], full: null, limit: Infinity };
const listeners = [], folders = new Map();
let number = 0, lastTick = Date.now(), usedAt = Date.now();

// Told with the upload whose state has changed, with null for progress alone.
export const onUploads = listener => listeners.push(listener);
const notify = item => {
  for (const listener of listeners) listener(item);
};

export const isUnderWay = ({ state }) => ['waiting', 'running', 'broken', 'asking'].includes(state);
const inState = state => uploads.items.filter(item => item.state === state);

// `files` have a File and its folders below `folder`; `bare` are folders that may be empty.
export function addUploads(root, folder, { files, bare }) {
  for (const path of bare) makeFolder(root, joined(folder, encodedPath(path))).catch(() => {});
  for (const { file, path } of files) {
    number += 1;
    uploads.items.push({
      id: `u${number}`,
      root,
      path: joined(folder, encodedPath(path)),
      name: lastOf(path),
      inFolder: path.includes('/'),
      file,
      size: file.size,
      state: 'waiting',
      sent: 0,
      samples: [],
      force: false,
      breaks: 0,
      error: null,
      retryAt: 0,
    });
  }
  notify(uploads.items.at(-1));
  pump();
}

function pump() {
  if (uploads.full) return;
  for (const item of inState('waiting').slice(0, AT_ONCE - inState('running').length)) run(item);
}

function become(item, state, more = {}) {
  Object.assign(item, { error: null }, more, { state });
  notify(item);
}

async function run(item) {
  const controller = new AbortController();
  Object.assign(item, { controller, sent: 0, samples: [], movedAt: Date.now(), beganAt: Date.now() });
  become(item, 'running');
  try {
    if (item.size > uploads.limit)
      throw { code: 'too_large', message: `one upload takes at most ${byteSize(uploads.limit)}` };
    if (item.inFolder) await makeFolder(item.root, item.path.slice(0, item.path.lastIndexOf('/')));
    if (!item.force && item.size > CHECKED_FROM_BYTES) await requireFree(item);
    controller.signal.throwIfAborted();
    const progress = sent => moved(item, sent);
    const answer = await upload(apiOf(item.root, 'file', item.path, item.force ? '&force=true' : ''), item.file, {
      progress,
      signal: controller.signal,
    });
    become(item, 'done', { size: answer.size, replaced: answer.replaced });
  } catch (error) {
    if (uploads.items.includes(item)) await finish(item, error);
  }
  pump();
}

// A folder with what is above it, asked for once.
function makeFolder(root, path) {
  const key = `${root}/${path}`;
  if (!folders.has(key)) {
    folders.set(key, call('POST', apiOf(root, 'mkdir', path), { body: { parents: true } }));
    folders.get(key).catch(() => folders.delete(key));
  }
  return folders.get(key);
}

// The service would refuse a taken name too, but only once the connection is full of the file.
async function requireFree(item) {
  const found = await entryAt(item);
  if (!found) {
    item.wasFree = true;
    return;
  }
  // the answer alone was lost
  if (item.wasFree && found.type === 'file' && found.size === item.size) throw { isThere: true };
  throw { code: 'file_exists', type: found.type };
}

async function entryAt({ root, path }) {
  try {
    return (await call('GET', apiOf(root, 'list', path, '&limit=1'), { background: true })).entry;
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

function moved(item, sent) {
  const now = Date.now();
  Object.assign(item, { sent: Math.min(sent, item.size), movedAt: now });
  item.samples = [...item.samples.filter(([at]) => now - at < SAMPLE_MS), [now, item.sent]];
  notify(null);
}

// Bytes in a second, of the last seconds; 0 where it cannot be told yet.
export function rateOf({ samples }) {
  const [[from, before] = [0, 0], [to, after] = [0, 0]] = [samples[0], samples.at(-1)];
  return to - from > 500 ? (after - before) / (to - from) * 1000 : 0;
}

// A service that stops ends what it receives by a conflict; one that comes at once, twice, is of another kind.
function mayPass(item, { code, status }) {
  if (code !== 'conflict') return status >= 500;
  const isFirst = !item.hadConflict;
  item.hadConflict = true;
  return isFirst || Date.now() - item.beganAt > 2000;
}

async function finish(item, error) {
  if (error.isThere) become(item, 'done');
  else if (error.code === 'file_exists' && error.type !== 'directory') become(item, 'asking');
  else if (error.code === 'file_exists')
    become(item, 'failed', { error: { code: 'file_exists', message: 'a folder of that name is there already' } });
  else if (error.code === 'storage_full') holdFor(item, error);
  else if (error.status === 401) later(item, { why: 'signed out', seconds: Infinity });
  else if ([429, 503].includes(error.status)) later(item, { why: error.message, seconds: error.retryAfter ?? 4 });
  else if (error.code === 'unreachable' || error.name === 'AbortError' || mayPass(item, error)) await broken(item);
  else become(item, 'failed', { error });
}

// It broke off: the file may have changed, the service may not answer, or have refused it in mid-file.
async function broken(item) {
  try {
    await item.file.slice(0, 1).arrayBuffer();
  } catch {
    become(item, 'failed', {
      error: { code: 'file_changed', message: 'the file has changed on this computer, or is gone; choose it again' },
      isGone: true,
    });
    return;
  }
  if (Date.now() - item.beganAt > 60_000) item.breaks = 0;
  const seconds = WAITS[Math.min(item.breaks, WAITS.length - 1)];
  item.breaks += 1;
  let roots;
  try {
    roots = await call('GET', '/api/fs/roots', { background: true });
  } catch {
    later(item, { why: 'offline', seconds });
    return;
  }
  const free = roots.items.find(({ id }) => id === item.root)?.free_bytes;
  if (typeof free === 'number' && free < item.size)
    holdFor(item, { code: 'storage_full',
      message: `${item.root} has ${byteSize(free)} free, and ${item.name} has ${byteSize(item.size)}` });
  else if (item.breaks > BREAKS)
    become(item, 'failed', {
      error: { code: 'broken_off', message: `the connection broke ${item.breaks} times, each time from the start` },
    });
  else later(item, { why: 'broke', seconds });
}

function later(item, { why, seconds }) {
  if (!uploads.items.includes(item)) return;
  become(item, 'broken', { why, sent: 0, retryAt: Date.now() + seconds * 1000 });
}

// A full disk is full for all of them: none begins until the person says so.
function holdFor(item, error) {
  uploads.full = error;
  become(item, 'waiting', { sent: 0 });
}

// ---- what the person does ----

export function cancelUpload(item) {
  uploads.items = uploads.items.filter(other => other !== item);
  item.controller?.abort();
  if (!uploads.items.some(isUnderWay)) uploads.full = null;
  notify(item);
  pump();
}

export function cancelAll() {
  for (const item of uploads.items.filter(isUnderWay)) cancelUpload(item);
}

export function tryAgain(item, more = {}) {
  become(item, 'waiting', { retryAt: 0, breaks: 0, ...more });
  pump();
}

export const replaceAll = () => {
  for (const item of inState('asking')) tryAgain(item, { force: true });
};
export const skipAll = () => {
  for (const item of inState('asking')) cancelUpload(item);
};

export function clearEnded() {
  uploads.items = uploads.items.filter(isUnderWay);
  notify(null);
}

export function goOn() {
  uploads.full = null;
  notify(null);
  pump();
}

// The service answers again, or the session: what broke off goes on at once.
export function goOnNow() {
  for (const item of inState('broken')) become(item, 'waiting');
  pump();
}

// ---- time ----

// A connection that says nothing is given up; after the computer has slept, soon.
function watch() {
  const now = Date.now(), hasSlept = now - lastTick > ASLEEP_MS;
  lastTick = now;
  for (const item of inState('running')) {
    const most = item.sent < item.size ? SILENT_MS : SILENT_END_MS;
    if (hasSlept) item.movedAt = Math.min(item.movedAt, now - most + GRACE_MS);
    if (now - item.movedAt > most) item.controller.abort();
  }
  if (now - usedAt > USE_MS && inState('running').length) { // an upload of hours is a use of the session
    usedAt = now;
    call('GET', '/api/auth/session').catch(() => {});
  }
  const due = inState('broken').filter(item => item.retryAt <= now);
  for (const item of due) become(item, 'waiting');
  if (due.length) pump();
  if (inState('broken').length) notify(null); // the seconds left
}

setInterval(watch, 1000);
window.addEventListener('online', goOnNow);
onState(state => {
  if (state.name === 'live') { for (const item of inState('broken')) if (item.why === 'offline') item.retryAt = 0; }
});
window.addEventListener('beforeunload', event => {
  if (uploads.items.some(isUnderWay)) event.preventDefault();
});
