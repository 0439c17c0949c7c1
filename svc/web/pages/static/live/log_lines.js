// The lines of a log: the newest of them, in parts that are drawn only where they are seen.
import { element } from '../frame/dom.js';

const KEPT_LINES = 5000, PART = 100, LINE_MAX = 16 * 1024;
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
const END_PX = 32;

// What a line says on a screen: no colours, and of what was written over itself the last.
export function readable(text) {
  const last = text.replace(/\r+$/, '').split('\r').pop();
  return last.replace(ESCAPES, '').replace(CONTROLS,
    mark => (mark === '\u007f' ? '\u2421' : String.fromCharCode(0x2400 + mark.charCodeAt(0))));
}

// Of a line that is still written, as much as can be shown.
function bounded(text) {
  const last = text.slice(0, -1).lastIndexOf('\r');
  const kept = last < 0 ? text : text.slice(last + 1);
  return kept.length <= LINE_MAX ? kept : kept.slice(0, LINE_MAX);
}

// `place` scrolls; `changed()` is called when lines, what was found, or the place in it are others.
export class LogLines {
  constructor(place, changed) {
    this.place = place;
    this.changed = changed;
    this.lines = []; // {node, text, raw}
    this.open = null; // the line that goes on
    this.queue = [];
    this.isDue = false;
    this.isAtEnd = true;
    this.top = 0;
    this.fresh = 0; // lines that came below what is seen
    this.search = { text: '', hits: [], at: -1 };
    place.addEventListener('scroll', () => this.scrolled(), { passive: true });
    new ResizeObserver(() => {
      if (this.isAtEnd) this.toEnd();
    }).observe(place);
  }

  add({ text, time, stream }) {
    this.later({ text, time, isError: stream === 'stderr' });
  }

  mark(text) {
    this.later({ text: `${text}\n`, isMark: true });
  }

  later(chunk) {
    this.queue.push(chunk);
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.flush();
    });
  }

  clear() {
    this.queue = [];
    this.lines = [];
    this.open = null;
    this.isAtEnd = true;
    this.fresh = 0;
    this.search.hits = [];
    this.search.at = -1;
    this.place.replaceChildren();
    this.changed();
  }

  flush() {
    const before = this.lines.length;
    for (const chunk of this.queue.splice(0)) this.take(chunk);
    this.open?.write();
    const added = this.lines.length - before;
    if (!this.isAtEnd) this.fresh += added;
    this.trim();
    if (this.isAtEnd) this.toEnd();
    this.changed();
  }

  take({ text, ...how }) {
    if (how.isMark && this.open) this.close();
    const parts = text.split('\n');
    const rest = parts.pop();
    for (const part of parts) {
      this.write(part, how);
      this.close();
    }
    if (rest) this.write(rest, how);
  }

  write(text, how) {
    this.open ??= this.begin(how);
    this.open.raw = bounded(this.open.raw + text);
  }

  begin({ time, isError, isMark }) {
    const text = element('span');
    const at = time ? new Date(time) : null;
    const stamp = at
      && element('time', { datetime: time, title: `${time.slice(0, 23).replace('T', ' ')} UTC` }, clockOf(at));
    const line = { raw: '', text: '',
      node: element('div', { class: isMark ? 'between' : isError ? 'err' : null }, stamp, text) };
    line.write = () => {
      line.text = readable(line.raw);
      text.textContent = line.text || '\u00a0';
      this.match(line);
    };
    this.lines.push(line);
    let part = this.place.lastElementChild;
    if (!part || part.childElementCount >= PART) {
      part = element('div.part');
      this.place.append(part);
    }
    part.append(line.node);
    return line;
  }

  close() {
    this.open?.write();
    this.open = null;
  }

  // Whole parts go, and what is seen stays where it is.
  trim() {
    while (this.lines.length > KEPT_LINES + PART) {
      const first = this.place.firstElementChild, count = first.childElementCount;
      const gone = new Set(this.lines.splice(0, count));
      const height = this.isAtEnd ? 0 : first.offsetHeight;
      first.remove();
      if (height) this.place.scrollTop -= height;
      const { search } = this;
      const lost = search.hits.filter(hit => gone.has(hit)).length;
      if (lost) {
        search.hits.splice(0, lost);
        search.at = Math.max(-1, search.at - lost);
      }
    }
  }

  // ---- finding ----

  find(text) {
    this.search = { text: text.toLowerCase(), hits: [], at: -1 };
    for (const line of this.lines) {
      line.node.classList.remove('hit', 'now');
      this.match(line);
    }
    if (this.search.hits.length) this.step(-1);
    else this.changed();
  }

  match(line) {
    const { text, hits } = this.search;
    const isHit = text !== '' && line.text.toLowerCase().includes(text);
    const was = line.node.classList.contains('hit');
    line.node.classList.toggle('hit', isHit);
    if (isHit && !was) hits.push(line);
    else if (was && !isHit) hits.splice(hits.indexOf(line), 1);
  }

  step(by) {
    const { hits } = this.search;
    if (!hits.length) return;
    hits[this.search.at]?.node.classList.remove('now');
    this.search.at = this.search.at < 0
      ? (by < 0 ? hits.length - 1 : 0)
      : (this.search.at + by + hits.length) % hits.length;
    const { node } = hits[this.search.at];
    node.classList.add('now');
    node.scrollIntoView({ block: 'center' });
    this.changed();
  }

  // ---- where it is ----

  scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.place;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < END_PX || (this.isAtEnd && scrollTop >= this.top);
    this.top = scrollTop; // what grows below leaves it as it is: only a person goes up
    if (isAtEnd === this.isAtEnd) return;
    this.isAtEnd = isAtEnd;
    if (isAtEnd) this.fresh = 0;
    this.changed();
  }

  toEnd() {
    this.isAtEnd = true;
    this.fresh = 0;
    const { place } = this;
    place.scrollTop = place.scrollHeight;
    requestAnimationFrame(() => {
      if (this.isAtEnd) place.scrollTop = place.scrollHeight;
    }); // what was drawn only now is higher
  }
}

const two = number => String(number).padStart(2, '0');
const clockOf = at =>
  `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${
    two(at.getSeconds())
  }`;
