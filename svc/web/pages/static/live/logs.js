// What the container and its launchers print, as it comes.
import { call } from '../frame/api.js';
import { element, find, replace, setAttribute } from '../frame/dom.js';
import { onEvent } from '../frame/events.js';
import { setCommand } from '../frame/foot.js';
import { answer, refused } from '../frame/notices.js';
import { commandText, quoted } from '../frame/commands.js';
import { counted } from '../frame/format.js';
import { FollowedStream } from './followed.js';
import { startWorkspace, workspaceName, workspacePath } from '../workspace/head.js';
import { LogLines } from './log_lines.js';
import { perform } from '../screen/page.js';
import { countDown, STATES, startFollowButton } from './surroundings.js';

const TAILS = [200, 1000, 5000];
const SEG_MAX = 4; // launchers, beyond which they are a list to choose from

const log = { record: /** @type {Api.Workspace} */ (null),
  launcher: new URLSearchParams(location.search).get('launcher'), tail: 1000, hasTimes: false, hadEnded: false };

const lines = new LogLines(find('[data-out]'), () => showFound());
const stream = new FollowedStream({ url: streamUrl, take, changed: showStream });

function streamUrl() {
  const query = new URLSearchParams({ tail: String(log.tail) });
  if (log.launcher) query.set('launcher', log.launcher);
  return `${workspacePath(log.record)}/logs/stream?${query}`;
}

function take(name, data) {
  if (name === 'marker') {
    lines.mark(data.text);
    return;
  }
  if (name !== 'log') return;
  if (log.hadEnded) {
    log.hadEnded = false;
    if (!log.launcher) lines.mark('it was started again');
  }
  lines.add(data);
}

// The command for an output; `follows` whether it goes on.
function commandFor(launcher, { follows, tail = true }) {
  return ['ws logs', log.record?.name ?? workspaceName, ['--launcher', launcher], log.hasTimes && '--timestamps', [
    '--tail',
    tail && log.tail,
  ], follows && '--follow'];
}

const logCommand = () => commandFor(log.launcher, { follows: !['paused', 'ended'].includes(stream.status.name) });

function beginAnew() {
  lines.clear();
  showSources();
  log.hadEnded = false;
  answer(null);
  stream.start({ anew: true });
}

// ---- whose output ----

function showSources() {
  const names = log.record.launchers.map(launcher => launcher.name);
  if (log.launcher && !names.includes(log.launcher)) names.push(log.launcher);
  const visible = [log.record.name, log.launcher, log.tail, log.hasTimes, ...names].join('\n');
  const place = find('[data-sources]');
  if (place.dataset.text === visible) return;
  place.dataset.text = visible;
  setAttribute(find('[data-out]'), 'aria-label', `Output of ${log.launcher ?? 'the container'}`);
  setAttribute(find('[data-save]'), 'data-cmd',
    `${commandText(commandFor(log.launcher, { follows: false, tail: false }))} > ${
      quoted(`${log.launcher ?? log.record.name}.log`)
    }`);
  replace(place, names.length > SEG_MAX ? sourceList(names) : sourceButtons(names));
}

function sourceButtons(names) {
  const button = (name, title) =>
    element('button', {
      'aria-pressed': String(log.launcher === name),
      key: `source-${name ?? ''}`,
      cmd: commandFor(name, { follows: true }),
      click: () => chooseSource(name),
    }, title);
  return element('div.seg', { role: 'group', 'aria-label': 'Whose output' }, button(null, 'Container'),
    names.map(name => button(name, element('span.mono.clip', name))));
}

function sourceList(names) {
  const option = (value, title) => element('option', { value, selected: (log.launcher ?? '') === value }, title);
  return element('select.input.auto', { 'aria-label': 'Whose output', key: 'sources',
    on: { change: event => chooseSource(event.target.value || null) } }, option('', 'Container'),
    names.map(name => option(name, name)));
}

function chooseSource(launcher) {
  if (log.launcher === launcher) return;
  log.launcher = launcher;
  history.replaceState(history.state, '',
    `${location.pathname}${launcher ? `?launcher=${encodeURIComponent(launcher)}` : ''}`);
  beginAnew();
}

// ---- what is said of it ----

const statesNow = () => ({
  ...STATES,
  live: ['ok', 'Following'],
  paused: ['stopped', 'Paused: what is printed meanwhile comes afterwards'],
  waiting: ['busy', 'The connection is gone; trying again ',
    element('span.num', { 'aria-hidden': true, 'data-in': true })],
  ended: ['stopped',
    log.launcher ? 'It has ended, or was not started' : 'It does not run; this is what it has printed'],
});

let stopCounting = () => {};

function showStream() {
  const { status } = stream, { name } = status;
  if (!log.record) return;
  if (name === 'ended') log.hadEnded = true;
  const [kind, ...text] = statesNow()[name];
  const isPaused = name === 'paused' || name === 'ended';
  replace(find('[data-stream]'), element('span', { class: `state small ${kind}` }, element('span', ...text)),
    ...name !== 'waiting'
      ? []
      : [
        element('button.btn.link.small', { key: 'now', click: () => stream.now() }, 'Now'),
      ]);
  stopCounting();
  stopCounting = countDown(find('[data-in]'), status.nextAt);
  const button = find('[data-follow]');
  button.textContent = isPaused ? 'Follow' : 'Pause';
  setAttribute(button, 'data-cmd', commandFor(log.launcher, { follows: isPaused }));
  find('[data-trouble]').replaceChildren(
    ...name !== 'refused'
      ? []
      : [refused(status.error, { what: 'The log could not be read.', retry: () => stream.start(), answers: false })]
  );
  setCommand(logCommand());
  showFound();
}

function showFound() {
  const { hits, at, text } = lines.search;
  find('[data-found]').textContent = !text ? '' : hits.length ? `${at + 1} of ${hits.length}` : 'not there';
  for (const button of [find('[data-before]'), find('[data-after]')]) button.hidden = hits.length < 2;
  const newest = find('[data-newest]');
  newest.hidden = lines.isAtEnd;
  newest.textContent = lines.fresh ? `To the newest, ${counted(lines.fresh, 'line')} further` : 'To the newest';
  find('[data-empty]').hidden = lines.lines.length > 0 || !['live', 'ended', 'paused'].includes(stream.status.name);
}

// ---- buttons ----

function save(button) {
  const query = [log.launcher && `launcher=${encodeURIComponent(log.launcher)}`, log.hasTimes && 'timestamps=true']
    .filter(Boolean).join('&');
  return perform(button, { what: 'The log was not saved.' }, async () => {
    const { url } = await call('POST', '/api/tickets', {
      body: { url: `${workspacePath(log.record)}/logs/raw${query && `?${query}`}` },
    });
    element('a', { href: url, download: '' }).click();
  });
}

function startLogButtons() {
  const search = find('input[data-search]'), wrap = find('input[data-wrap]'), times = find('input[data-times]');
  search.addEventListener('input', () => lines.find(search.value));
  search.addEventListener('keydown', event => {
    if (event.key === 'Enter') {
      event.preventDefault();
      lines.step(event.shiftKey ? 1 : -1);
    }
  });
  find('[data-before]').addEventListener('click', () => lines.step(-1));
  find('[data-after]').addEventListener('click', () => lines.step(1));
  find('[data-newest]').addEventListener('click', () => {
    lines.toEnd();
    showFound();
  });
  startFollowButton(stream);
  find('[data-save]').addEventListener('click', event => save(event.currentTarget));
  wrap.addEventListener('change', () => find('[data-out]').toggleAttribute('data-nowrap', !wrap.checked));
  times.addEventListener('change', () => {
    log.hasTimes = times.checked;
    find('[data-out]').toggleAttribute('data-times', log.hasTimes);
    showSources();
    setCommand(logCommand());
  });
  const tails = find('select[data-tail]');
  tails.append(
    ...TAILS.map(count =>
      element('option', { value: count, selected: count === log.tail }, `${count.toLocaleString('en')} lines`)
    )
  );
  tails.addEventListener('change', () => {
    log.tail = Number(tails.value);
    beginAnew();
  });
}

/** @param {Api.Workspace} record */
function showLog(record) {
  const isFirst = log.record === null;
  log.record = record;
  showSources();
  if (isFirst) stream.start();
  else if (stream.status.name === 'signed-out' || stream.status.name === 'waiting') stream.now();
}

// What has ended may have begun again: go on after its last line.
onEvent(({ type, subject }) => {
  if (stream.status.name !== 'ended' || !/^(workspace|launcher)\./.test(type)) return;
  if (type.startsWith('workspace.') && subject?.id !== log.record.id) return;
  stream.start();
});

startLogButtons();
await startWorkspace({ tab: 'logs', show: showLog, command: logCommand });
