// What a workspace uses, every two seconds: charts, and its busiest processes.
import { call } from '../frame/api.js';
import { element, find, findAll, setAttribute } from '../frame/dom.js';
import { setCommand } from '../frame/foot.js';
import { refused } from '../frame/notices.js';
import { commandText } from '../frame/commands.js';
import { amount, formatSize, time } from '../frame/format.js';
import { commandOf } from '../parts/workspace_actions.js';
import { FollowedStream } from './followed.js';
import { startWorkspace, workspaceName, workspacePath } from '../workspace/head.js';
import { monitorChart } from './monitor_chart.js';
import { processTable, showProcesses } from './monitor_processes.js';
import { onColours, STATES, startFollowButton } from './surroundings.js';

const BYTES_GIB = 2 ** 30, SAMPLES_MAX = 21_600, GAP_S = 7;
const WINDOWS = { 120: '2 min', 900: '15 min', 0: 'Since I opened it' };

const tenth = value => amount(Math.round(value * 10) / 10);
const coreText = value => value > 0 && value < 0.1 ? value.toFixed(2) : tenth(value);
const sizeOf = gib => formatSize(gib * BYTES_GIB);
const seen = { record: /** @type {Api.Workspace} */ (null), sample: null, window: 120, asTables: !window.uPlot,
  times: [], cpu: [], memory: [], gpus: new Map(), numbers: new Map(), isBuilt: false };
const charts = {
  cpu: monitorChart({ title: 'CPU', form: coreText }),
  memory: monitorChart({ title: 'Memory', form: sizeOf }),
  use: monitorChart({ title: 'GPU use', form: value => `${Math.round(value)} %`, hasKeys: true }),
  vram: monitorChart({ title: 'GPU memory', form: sizeOf, hasKeys: true }),
};
const processes = processTable();
const samples = new FollowedStream({ url: () => `${workspacePath(seen.record)}/monitor/stream`, take: (name, data) => {
  if (name === 'sample') takeSample(data);
}, changed: showState });

const monitorCommand = () => ['ws monitor', seen.record?.name ?? workspaceName];
const numberOf = uuid => seen.numbers.get(uuid) ?? uuid.slice(4, 8);

// ---- samples ----

function takeSample(sample) {
  const at = Date.parse(sample.at) / 1000, before = seen.times.at(-1);
  if (before !== undefined && at <= before) return;
  if (before !== undefined && at - before > GAP_S) push(before + 1, null);
  push(at, sample);
  if (seen.times.length > SAMPLES_MAX) { for (const list of lists()) list.splice(0, list.length - SAMPLES_MAX); }
  seen.sample = sample;
  showSample();
}

const lists = () => [seen.times, seen.cpu, seen.memory, ...[...seen.gpus.values()].flatMap(gpu => [gpu.use, gpu.vram])];

function push(at, sample) {
  for (const { uuid } of sample?.gpus ?? []) {
    if (!seen.gpus.has(uuid))
      seen.gpus.set(uuid, { use: seen.times.map(() => null), vram: seen.times.map(() => null) });
  }
  seen.times.push(at);
  seen.cpu.push(sample && sample.cpu_percent / 100);
  seen.memory.push(sample && sample.memory_bytes / BYTES_GIB);
  for (const [uuid, lines] of seen.gpus) {
    const gpu = sample?.gpus.find(one => one.uuid === uuid);
    lines.use.push(gpu?.utilization_percent ?? null);
    lines.vram.push(gpu ? gpu.used_bytes / BYTES_GIB : null);
  }
}

// ---- showing ----

function showSample() {
  const { sample } = seen;
  if (!sample) return;
  build();
  const to = seen.times.at(-1), from = seen.window === 0 ? Math.min(seen.times[0], to - 60) : to - seen.window;
  const highest = values => values.reduce((most, value) => Math.max(most, value ?? 0), 0);
  const course = (lines, limit, unit) => ({ times: seen.times, lines, from, to, unit,
    most: () => limit || Math.max(1, Math.ceil(highest(lines.flatMap(line => line.values)) * 1.25)) });
  const cores = sample.cpu_limit, memory = sample.memory_limit_bytes && sample.memory_limit_bytes / BYTES_GIB;
  charts.cpu.show(
    course([{ name: 'Cores', values: seen.cpu }], cores, cores ? `of ${amount(cores)} cores` : 'cores, no limit'),
    seen.asTables
  );
  charts.memory.show(
    course([{ name: 'GiB', values: seen.memory }], memory, memory ? `of ${sizeOf(memory)}` : 'no limit'),
    seen.asTables
  );
  const gpus = [...seen.gpus].sort(([a], [b]) => (seen.numbers.get(a) ?? 99) - (seen.numbers.get(b) ?? 99));
  const vram = Math.max(0, ...sample.gpus.map(gpu => gpu.vram_bytes ?? 0)) / BYTES_GIB;
  for (const name of ['use', 'vram']) charts[name].node.hidden = gpus.length === 0;
  const lines = key => gpus.map(([uuid, values]) => ({ name: `GPU ${numberOf(uuid)}`, values: values[key] }));
  if (gpus.length) {
    charts.use.show(course(lines('use'), 100, ''), seen.asTables);
    charts.vram.show(course(lines('vram'), vram, vram ? `of ${sizeOf(vram)}` : ''), seen.asTables);
  }
  showProcesses(processes, sample, uuid => String(numberOf(uuid)));
  find('[data-source]').textContent = `A sample every 2 s, ${
    sample.source === 'cgroup' ? 'counted by the kernel' : 'summed over its processes, for the host counts none'
  }`;
}

function build() {
  if (seen.isBuilt) return;
  seen.isBuilt = true;
  find('[data-charts]').append(...Object.values(charts).map(chart => chart.node));
  find('[data-processes]').append(processes);
  for (const name of ['use', 'vram']) charts[name].node.hidden = seen.record.gpus.length === 0;
}

const SAID = { ...STATES, live: ['ok', 'Live'], paused: ['stopped', 'Paused'],
  waiting: ['busy', 'The connection is gone; trying again'], ended: ['stopped', 'It has stopped'] };

function showState() {
  const { status } = samples, [kind, text] = SAID[status.name];
  const isOld = !['live', 'connecting'].includes(status.name) && seen.sample;
  find('[data-stream]').replaceChildren(element('span', { class: `state small ${kind}` }, text),
    ...(isOld ? [element('span.muted.small', 'as of ', time(seen.sample.at, 'clock'))] : []));
  const isOff = ['paused', 'ended'].includes(status.name);
  find('[data-follow]').textContent = isOff ? 'Go on' : 'Pause';
  find('[data-follow]').hidden = status.name === 'ended';
  showTrouble(
    status.name === 'refused'
      ? refused(status.error, { what: 'What it uses could not be read.', retry: () => samples.start({ anew: true }),
        answers: false })
      : null
  );
}

// Instead of what could not be read; what was read before stays.
function showTrouble(notice) {
  const place = find('[data-trouble]');
  place.replaceChildren(...(notice ? [notice] : []));
  for (const name of ['[data-charts]', '[data-processes]']) find(name).hidden = notice !== null && seen.sample === null;
}

/** @param {Api.Workspace} record */
function showMonitor(record) {
  const isFirst = seen.record === null, runs = record.status === 'running';
  seen.record = record;
  find('[data-not-running]').hidden = runs || seen.sample !== null;
  find('[data-not-running] code').textContent = commandText(commandOf('start', record.name));
  find('[data-monitor]').hidden = !runs && seen.sample === null;
  setCommand(monitorCommand());
  if (runs) build();
  if (runs
    && (isFirst || ['ended', 'waiting', 'signed-out'].includes(samples.status.name)
      || (samples.status.name === 'paused' && !seen.sample))) samples.start({ anew: true });
  if (isFirst) readNumbers();
}

// The GPUs by their numbers on this host.
async function readNumbers() {
  try {
    const { gpus } = await call('GET', '/api/servers/hardware', { background: true });
    for (const gpu of gpus) seen.numbers.set(gpu.uuid, gpu.index);
    showSample();
  } catch { /* they have their own names */ }
}

function startMonitorButtons() {
  const choices = find('[data-windows]');
  choices.append(
    ...Object.entries(WINDOWS).sort(([a], [b]) => (Number(a) || 1e9) - (Number(b) || 1e9)).map(([value, title]) =>
      element('button', { 'aria-pressed': String(Number(value) === seen.window), 'data-window': value, click: () => {
        seen.window = Number(value);
        for (const button of findAll('[data-window]'))
          setAttribute(button, 'aria-pressed', String(button.dataset.window === value));
        showSample();
      } }, title)
    )
  );
  const tables = find('input[data-tables]');
  tables.checked = seen.asTables;
  tables.addEventListener('change', () => {
    seen.asTables = tables.checked;
    showSample();
  });
  startFollowButton(samples, { anew: true });
  onColours(() => {
    for (const chart of Object.values(charts)) chart.restyle();
  });
}

startMonitorButtons();
await startWorkspace({ tab: 'monitor', show: showMonitor, command: monitorCommand });
