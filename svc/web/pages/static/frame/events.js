// What changes, as it changes: one stream for all tabs of this browser.
//
// The tab that holds the lock reads it and tells the others. A stream that breaks is taken up after the last
// event; a stream that is away is asked for by GET /api/health after 1, 2, 4, 8 seconds, then every 8, and at
// once when the person comes back.
import { send, session } from './api.js';
import { readEvents } from './sse.js';

const SILENCE_MS = 40_000; // a comment comes every 15 s
const WAITS_S = [1, 2, 4, 8];

const listeners = { event: [], state: [], gap: [] };
export const onEvent = listener => listeners.event.push(listener);
export const onState = listener => listeners.state.push(listener); // {name: live, restarting or away, nextAt}
export const onGap = listener => listeners.gap.push(listener); // events may have been missed: read anew

const channel = new BroadcastChannel('svc.events');
let lastId = '', leads = false, isFollowing = false, state = { name: 'connecting' };
let wakeUp = () => {}, heardAt = 0, reading = null, tries = 0, isRefused = false;

function tell(kind, value) {
  for (const listener of listeners[kind]) listener(value);
}

function share(kind, value) {
  take(kind, value);
  channel.postMessage({ kind, value });
}

function take(kind, value) {
  if (kind === 'event') {
    lastId = value.id ? String(value.id) : lastId;
    tell('event', value);
  } else if (kind === 'gap') {
    tell('gap', value);
  } else if (kind === 'state') {
    state = value;
    tell('state', state);
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

// Begin, or begin anew with another session; every tab calls it. Whoever leads goes on until the tab is closed.
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

// Where the stream begins, if it has not: what changed after this event is told, so that nothing is read twice.
export function beginAfter(id) {
  if (lastId === '' && Number.isInteger(id)) lastId = String(id);
}

// The person is back, or the network: do not wait any longer.
export function again() {
  if (leads) {
    if (reading && Date.now() - heardAt > SILENCE_MS / 2) reading.abort();
    wakeUp();
  } else {
    channel.postMessage({ kind: 'again' });
  }
}

export function stateOfStream() {
  return state;
}

// Read until it breaks; then wait until the service answers again.
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
    name = isRefused ? 'live' : state.name === 'restarting' ? 'restarting' : 'away';
  }
  do {
    const seconds = name === 'live' ? 0.5 : WAITS_S[Math.min(tries, WAITS_S.length - 1)];
    if (name !== 'live') share('state', { name, nextAt: Date.now() + seconds * 1000 });
    tries = await pause(seconds) ? 0 : tries + 1;
    name = name === 'live' ? 'away' : name;
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

// True when it ended early: the person has come back.
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
  heardAt = Date.now();
  const watch = setInterval(() => {
    if (Date.now() - heardAt > SILENCE_MS) reading.abort();
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
    await readEvents(response, { take: dispatch, heard: () => {
      heardAt = Date.now();
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
