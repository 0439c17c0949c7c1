// The event stream, one for all tabs of this browser.
//
// The tab that holds the lock reads it and posts to the others. A broken stream is resumed after the last event;
// when the service does not answer, GET /api/health is tried after 1, 2, 4, 8 seconds, then every 8, and at once when
// the user comes back to the tab.
import { send, session } from './api.js';
import { readEvents } from './sse.js';

const SILENCE_MS = 40_000; // a comment comes every 15 s
const WAITS_S = [1, 2, 4, 8];

const listeners = { event: [], state: [], gap: [] };
export const onEvent = listener => listeners.event.push(listener);
export const onState = listener => listeners.state.push(listener); // {name: live, restarting or offline, nextAt}
export const onGap = listener => listeners.gap.push(listener); // events may have been missed: read anew

const channel = new BroadcastChannel('svc.events');
let lastId = '', leads = false, isFollowing = false, state = { name: 'connecting' };
let wakeUp = () => {}, receivedAt = 0, reading = null, tries = 0, isRefused = false;

function notify(kind, value) {
  for (const listener of listeners[kind]) listener(value);
}

function share(kind, value) {
  take(kind, value);
  channel.postMessage({ kind, value });
}

function take(kind, value) {
  if (kind === 'event') {
    lastId = value.id ? String(value.id) : lastId;
    notify('event', value);
  } else if (kind === 'gap') {
    notify('gap', value);
  } else if (kind === 'state') {
    state = value;
    notify('state', state);
  }
}

channel.addEventListener('message', ({ data: { kind, value } }) => {
  if (kind === 'hello') {
    if (leads) channel.postMessage({ kind: 'state', value: state });
  } else if (kind === 'again') {
    if (leads) wakeUp();
  } else {
    take(kind, value);
  }
});

// Begin, or continue with another session; every tab calls it. The leading tab leads until it is closed.
export function follow() {
  channel.postMessage({ kind: 'hello' });
  if (isFollowing) {
    wakeUp();
    return;
  } // a new session: on with the one stream
  isFollowing = true;
  navigator.locks.request('svc.events', async () => {
    leads = true;
    while (session.secret) await readOn();
    leads = isFollowing = false;
  });
}

// Set the first event of a stream that has not begun, so that the first reading is not repeated.
export function beginAfter(id) {
  if (lastId === '' && Number.isInteger(id)) lastId = String(id);
}

// Reconnect now: the user or the network is back.
export function again() {
  if (leads) {
    if (reading && Date.now() - receivedAt > SILENCE_MS / 2) reading.abort();
    wakeUp();
  } else {
    channel.postMessage({ kind: 'again' });
  }
}

export function stateOfStream() {
  return state;
}

// Read the stream until it breaks, then wait until the service answers.
async function readOn() {
  let name;
  try {
    await readStream();
    name = state.name;
  } catch (error) {
    if (error.status === 401 || error.status === 403) { // it answers, but not this session
      share('state', { name: 'live' });
      await pause(60);
      return;
    }
    name = isRefused ? 'live' : state.name === 'restarting' ? 'restarting' : 'offline';
  }
  do {
    const seconds = name === 'live' ? 0.5 : WAITS_S[Math.min(tries, WAITS_S.length - 1)];
    if (name !== 'live') share('state', { name, nextAt: Date.now() + seconds * 1000 });
    tries = await pause(seconds) ? 0 : tries + 1;
    name = name === 'live' ? 'offline' : name;
  } while (session.secret && !await answers());
}

async function answers() {
  try {
    await fetch('/api/health', { cache: 'no-store', credentials: 'omit', signal: AbortSignal.timeout(8000) });
    return true;
  } catch {
    return false;
  }
}

// Resolves to true if reconnecting was requested before the time was over.
function pause(seconds) {
  return new Promise(resolve => {
    const timer = setTimeout(() => resolve(false), seconds * 1000);
    wakeUp = () => {
      clearTimeout(timer);
      resolve(true);
    };
  });
}

async function readStream() {
  reading = new AbortController();
  isRefused = false;
  receivedAt = Date.now();
  const watch = setInterval(() => {
    if (Date.now() - receivedAt > SILENCE_MS) reading.abort();
  }, 5000);
  try {
    const response = await send('GET', '/api/events', {
      background: true,
      signal: reading.signal,
      accept: { type: 'text/event-stream', after: lastId },
    });
    const hadBroken = state.name !== 'live' && state.name !== 'connecting';
    tries = 0;
    share('state', { name: 'live' });
    if (!lastId || hadBroken) share('gap', {}); // what happened between the first reading and now
    await readEvents(response, { take: dispatch, onData: () => {
      receivedAt = Date.now();
    } });
  } finally {
    clearInterval(watch);
    reading = null;
  }
}

function dispatch({ name, data, id }) {
  if (id) lastId = id;
  if (!data) return; // a comment
  if (name === 'restarting') share('state', { name: 'restarting', nextAt: Date.now() + 1000 });
  else if (name === 'gap') share('gap', JSON.parse(data));
  else if (name === 'error') {
    isRefused = true;
    reading.abort();
  } // the next try says why
  else share('event', JSON.parse(data));
}
