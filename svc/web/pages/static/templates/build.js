// A build or pull with its log: as far as it is, then line by line; the page may be closed meanwhile.
import { call } from '../frame/api.js';
import { element, find, findAll, icon, stateMark } from '../frame/dom.js';
import { duration, time, commaList } from '../frame/format.js';
import { cancelCommand } from '../parts/cancelling.js';
import { farOf } from './about.js';
import { pressable, putIn } from './page.js';

const LINES_MAX = 5000, AGAIN_MS = 1000;
const STATES = { queued: ['stopped', 'Queued'], running: ['busy', 'Under way'], succeeded: ['ok', 'Done'],
  failed: ['failed', 'Failed'], cancelled: ['stopped', 'Cancelled'] };
const NAMES = { build: 'Build', pull: 'Pull' };

// The panel of one operation at a time: update(operation, {title, cancel}); null is none.
export function createLog(place) {
  const head = element('header'),
    lines = element('pre', { tabindex: '0', role: 'log', 'aria-label': 'Log', 'aria-live': 'off', 'data-log': true });
  const panel = element('section.panel', { 'aria-labelledby': 'log-h', hidden: true, 'data-operation': true }, head,
    element('div.log.capped', lines));
  const state = { id: null, step: '', redraw: () => {}, after: 0, texts: [], isReading: false, timer: null,
    isEnded: false };
  place.append(panel);

  async function read() {
    const { id } = state;
    if (state.isReading || state.isEnded || !id || document.hidden) return;
    state.isReading = true;
    try {
      const came = await call('GET', `/api/operations/${encodeURIComponent(id)}/log?after=${state.after}`, {
        background: true,
      });
      if (id === state.id) add(came);
    } catch {
      /* the next try, or the banner */
    } finally {
      state.isReading = false;
      clearTimeout(state.timer);
      if (!state.isEnded) state.timer = setTimeout(read, AGAIN_MS);
    }
  }

  function add({ lines: fresh, next, ended }) {
    const follows = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 24;
    state.after = next;
    state.isEnded = ended;
    for (const { line, at, text } of fresh) {
      if (line <= state.texts.length) continue; // it is there
      state.texts.push(text);
      lines.append(element('span', { 'data-n': line, title: at }, text));
      state.step = stepOf(text) || state.step;
    }
    state.redraw();
    while (lines.childElementCount > LINES_MAX) lines.firstElementChild.remove();
    if (follows) lines.scrollTop = lines.scrollHeight;
    mark();
  }

  // What it failed at, marked once it has.
  function mark() {
    const texts = findAll('span', lines);
    if (panel.dataset.status !== 'failed' || !state.isEnded || texts.length === 0) return;
    texts.at(-1).className = 'err';
    for (const node of texts.slice(-20)) if (/\berror\b/i.test(node.textContent)) node.className = 'err';
  }

  function begin(id) {
    Object.assign(state, { id, step: '', after: 0, texts: [], isEnded: false });
    lines.replaceChildren();
    read();
  }

  function save(name) {
    const url = URL.createObjectURL(new Blob([`${state.texts.join('\n')}\n`], { type: 'text/plain' }));
    const link = element('a', { download: name, hidden: true });
    link.href = url;
    document.body.append(link);
    link.click();
    link.remove();
    URL.revokeObjectURL(url);
  }

  document.addEventListener('visibilitychange', read);
  return {
    update(operation, { title, name, cancel }) {
      panel.hidden = operation === null;
      if (!operation) return;
      panel.dataset.status = operation.status;
      state.redraw = () =>
        putIn(head, headOf(operation, { title, cancel, step: state.step, save: () =>
          save(`${name}-${operation.kind}.log`) }));
      if (operation.id !== state.id) begin(operation.id);
      else read();
      state.redraw();
      mark();
    },
    show() {
      find('h2', panel)?.scrollIntoView({ block: 'nearest' });
    },
  };
}

// The step that a line of a build's log begins: the figures of the operation may come later, or not for a quick one.
function stepOf(line) {
  const [, number, total] = /^STEP (\d+)\/(\d+)\b/.exec(line) ?? [];
  return total ? `step ${number} of ${total}` : '';
}

/** @param {Api.Operation} operation */
function headOf(operation, { title, cancel, step, save }) {
  const { id, kind, status, phase, progress, error, created_at: begun, finished_at: ended } = operation;
  const [shape, text] = STATES[status], isOpen = status === 'queued' || status === 'running';
  const failedAt = /\bstep \d+ of \d+\b/.exec(error?.message ?? '')?.[0]; // the last figures may be of a step before
  const far = status === 'running'
    ? commaList(phase, farOf(progress) || step)
    : status === 'failed' && failedAt
    ? `Failed at ${failedAt}`
    : '';
  const took = ended ? `, took ${duration((Date.parse(ended) - Date.parse(begun)) / 1000)}` : '';
  return [element('h2', { id: 'log-h' }, `${NAMES[kind] ?? kind} of ${title}`),
    stateMark(shape, far ? far.charAt(0).toUpperCase() + far.slice(1) : text),
    element('span.muted.small', 'begun ', time(begun, 'ago'), took),
    element('div.actions',
      isOpen && pressable('Cancel', { kind: 'sm', cmd: cancelCommand(id), key: 'cancel-log', run: cancel }),
      element('button.btn.sm.quiet', { cmd: ['operation log', id], key: 'save-log', click: save }, icon('download'),
        'Save the log'))];
}
