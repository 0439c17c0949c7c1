// A stream of this page alone: read while the page is seen, and taken up again after its last event.
import { Refusal, send } from '../frame/api.js';
import { onState } from '../frame/events.js';
import { readEvents } from '../frame/sse.js';

const SILENT_MS = 40_000; // a comment comes every 15 s
const PAUSES_S = [1, 3, 5, 8];

// `url()` is asked at each beginning, `take(name, data)` gets the events, and `changed()` is called when `status`
// is another: {name: connecting, live, waiting, restarting, paused, ended, signed-out or refused, ...}.
export class FollowedStream {
  constructor({ url, take, changed }) {
    this.url = url;
    this.take = take;
    this.changed = changed;
    this.status = { name: 'paused' };
    this.lastId = '';
    this.retry = 1;
    this.tries = 0;
    this.reading = this.timer = null;
    this.receivedAt = 0;
    this.isActive = false;
    document.addEventListener('visibilitychange', () => {
      if (this.isActive) document.hidden ? this.abort() : this.begin();
    });
    window.addEventListener('online', () => this.now());
    onState(({ name }) => {
      if (name === 'live') this.now();
    });
  }

  set(status) {
    this.status = status;
    this.changed();
  }

  // From where it was; `anew` from the beginning.
  start({ anew = false } = {}) {
    if (anew) this.lastId = '';
    this.isActive = true;
    this.begin();
  }

  stop() {
    this.isActive = false;
    this.abort();
    this.set({ name: 'paused' });
  }

  abort() {
    clearTimeout(this.timer);
    this.reading?.abort();
    this.reading = null;
  }

  // Reconnect now: the user or the service is back.
  now() {
    if (this.isActive && !document.hidden
      && ['waiting', 'restarting', 'signed-out', 'refused'].includes(this.status.name)) this.begin();
  }

  async begin() {
    this.abort();
    if (document.hidden) return;
    const reading = this.reading = new AbortController();
    if (this.status.name !== 'restarting') this.set({ name: 'connecting' });
    this.receivedAt = Date.now();
    const watch = setInterval(() => {
      if (Date.now() - this.receivedAt > SILENT_MS) reading.abort();
    }, 5000);
    try {
      const response = await send('GET', this.url(), { background: true, signal: reading.signal,
        accept: { type: 'text/event-stream', after: this.lastId } });
      if (reading !== this.reading) return;
      this.set({ name: 'live' });
      await readEvents(response, { take: event => {
        if (reading === this.reading) this.handle(event);
      }, onData: () => {
        this.receivedAt = Date.now();
      } });
      if (reading === this.reading) this.wait(this.status.name === 'restarting' ? this.retry : undefined);
    } catch (error) {
      if (reading === this.reading) this.failed(error);
    } finally {
      clearInterval(watch);
    }
  }

  handle({ name, data, id, retry }) {
    if (retry) this.retry = retry / 1000;
    if (id) this.lastId = id;
    if (!data) return;
    this.tries = 0;
    if (name === 'end') this.finish({ name: 'ended' });
    else if (name === 'restarting') this.set({ name: 'restarting' });
    else if (name === 'error') this.failed(new Refusal(0, JSON.parse(data).error, null));
    else this.take(name, JSON.parse(data));
  }

  finish(status) {
    this.abort();
    this.isActive = false;
    this.set(status);
  }

  failed(error) {
    this.abort();
    if (error.status === 401 || error.code === 'unauthenticated') this.set({ name: 'signed-out' });
    else if (!(error instanceof Refusal) || error.retryable) this.wait(error.retryAfter ?? undefined);
    else this.set({ name: 'refused', error });
  }

  wait(seconds = PAUSES_S[Math.min(this.tries, PAUSES_S.length - 1)]) {
    this.tries += 1;
    this.abort();
    if (this.status.name !== 'restarting' || this.tries > 1)
      this.set({ name: 'waiting', nextAt: Date.now() + seconds * 1000 });
    this.timer = setTimeout(() => this.begin(), seconds * 1000);
  }
}
