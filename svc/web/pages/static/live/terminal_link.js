// The connection to one shell: a WebSocket that is taken up again whenever it breaks, since the shell goes on.
import { call } from '../frame/api.js';

const PROTOCOL = 'svc-terminal.1';
const RETRIES_S = [1, 3, 5, 8];
const MESSAGE_MAX = 32 * 1024; // of the 64 KiB that the service takes
const BEHIND_MAX = 4 * 1024 * 1024; // bytes not shown yet, beyond which it begins anew with what is kept
const KEPT = 260 * 1024; // bytes that the service sends again, at most
const QUIET_MS = 120; // without output: what was kept has come
const RESTARTS = 1012, TAKEN = 4001, ENDED = 4000, BUGS = [1002, 1007, 1009, 4400];

// `view` shows; `size()` is that of the window; `changed()` is called when `status` is another:
// {name: connecting, open, waiting, restarting, behind, signed-out, refused or ended, ...}.
export class TerminalLink {
  constructor({ path, id, ticket = null, view, size, changed, titled }) {
    this.path = path;
    this.id = id;
    this.ticket = ticket;
    this.view = view;
    this.size = size;
    this.changed = changed;
    this.titled = titled;
    this.status = { name: 'connecting' };
    this.isNew = ticket !== null; // nothing was shown or asked before
    this.tries = 0;
    this.unread = this.replayed = 0;
    this.socket =
      this.timer =
      this.quiet =
      this.sent =
        null;
  }

  set(status) {
    this.status = status;
    this.changed();
  }

  async connect() {
    clearTimeout(this.timer);
    this.drop();
    const mine = this.attempt = {};
    if (this.status.name !== 'restarting') this.set({ name: 'connecting' });
    const url = `${this.path}/terminal?id=${encodeURIComponent(this.id)}`;
    try {
      const link = this.ticket
        ? `${url}&ticket=${encodeURIComponent(this.ticket)}`
        : (await call('POST', '/api/tickets', { body: { url }, background: true })).url;
      this.ticket = null;
      if (mine === this.attempt) this.attach(link);
    } catch (error) {
      if (mine === this.attempt) this.failed(error);
    }
  }

  attach(link) {
    const { cols, rows } = this.sent = this.size();
    const socket = this.socket = new WebSocket(`wss://${location.host}${link}&cols=${cols}&rows=${rows}`, PROTOCOL);
    let isAttached = false;
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('message', ({ data }) => {
      if (socket !== this.socket) return;
      if (typeof data !== 'string') {
        this.take(new Uint8Array(data));
        return;
      }
      const message = JSON.parse(data);
      if (message.type === 'attached') isAttached = true;
      this.handle(message);
    });
    socket.addEventListener('close', event => {
      if (socket === this.socket) this.closed(event, isAttached);
    });
  }

  handle(message) {
    if (message.type === 'attached') {
      this.tries = 0;
      this.replayed = 0;
      this.view.begin(!this.isNew);
      this.isNew = false;
      this.set({ name: 'open' });
      this.resize(this.size());
    } else if (message.type === 'state') {
      this.view.resize(message);
      this.titled(message.title);
      this.changed();
    } else if (message.type === 'skipped') {
      this.replayed = 0;
      this.view.begin(true);
    } else if (message.type === 'exit') {
      this.end(message.reason, message.exit_code);
    }
  }

  take(bytes) {
    this.unread += bytes.length;
    this.replayed += bytes.length;
    clearTimeout(this.quiet);
    this.view.write(bytes, () => {
      this.unread -= bytes.length;
      if (this.replayed > KEPT) this.view.endReplay();
      else if (this.unread === 0) this.quiet = setTimeout(() => this.view.endReplay(), QUIET_MS);
      if (this.unread === 0 && this.status.name === 'behind') this.connect();
    });
    if (this.unread > BEHIND_MAX) {
      this.drop();
      this.set({ name: 'behind' });
    }
  }

  type(bytes) {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    for (let at = 0; at < bytes.length; at += MESSAGE_MAX) this.socket.send(bytes.subarray(at, at + MESSAGE_MAX));
  }

  resize({ cols, rows }) {
    if (this.status.name !== 'open' || (this.sent.cols === cols && this.sent.rows === rows)) return;
    this.sent = { cols, rows };
    this.socket.send(JSON.stringify({ type: 'resize', cols, rows }));
  }

  // The room for it has changed: it takes it at once, unless another window rules.
  fit(room) {
    if (!this.isRuled) this.view.resize(room);
    this.resize(room);
    this.changed();
  }

  // Another window has another size, and was typed into last.
  get isRuled() {
    return this.status.name === 'open' && this.sent !== null
      && (this.view.size.cols !== this.sent.cols || this.view.size.rows !== this.sent.rows);
  }

  end(reason, exitCode = null) {
    this.drop();
    this.set({ name: 'ended', reason, exitCode });
  }

  closed({ code, reason }, wasAttached) {
    this.socket = null;
    if (code === ENDED || code === TAKEN) this.end(code === ENDED ? 'exited' : reason);
    else if (BUGS.includes(code))
      this.set({ name: 'refused', message: `The service did not take what this page sent (${code}).` });
    else if (code === RESTARTS) {
      this.set({ name: 'restarting' });
      this.wait(0.5);
    } else if (wasAttached) this.wait();
    else this.check();
  }

  // It was not let in, and a browser does not say why: whether it is still there is asked.
  async check() {
    try {
      const { items } = await call('GET', `${this.path}/terminals`, { background: true });
      if (items.some(item => item.id === this.id)) this.wait();
      else this.end('gone');
    } catch (error) {
      this.failed(error);
    }
  }

  failed(error) {
    if (error.status === 401) this.set({ name: 'signed-out' });
    else if (error.retryable || error.status === undefined) this.wait(error.retryAfter ?? undefined);
    else if (error.status === 404) this.end('gone');
    else this.set({ name: 'refused', message: error.message });
  }

  wait(seconds = RETRIES_S[Math.min(this.tries, RETRIES_S.length - 1)]) {
    this.tries += 1;
    if (this.status.name !== 'restarting' || this.tries > 1)
      this.set({ name: 'waiting', nextAt: Date.now() + seconds * 1000 });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), seconds * 1000);
  }

  // The person is back, or the service: do not wait any longer. With `anew` also what seems to be connected.
  now(anew = false) {
    const { name } = this.status;
    if (['waiting', 'restarting', 'signed-out', 'refused'].includes(name) || (anew && name === 'open')) this.connect();
  }

  drop() {
    clearTimeout(this.quiet);
    const { socket } = this;
    this.socket = this.attempt = null;
    if (socket) socket.close();
  }

  leave() {
    clearTimeout(this.timer);
    this.drop();
  }
}
