// What is left with this workspace in it: the GPUs that it would get, and a gauge for each resource.
import { drawn, element, find, findAll, setAttribute } from '../frame/dom.js';
import { amount, gibibytes } from '../frame/format.js';
import { bank } from '../parts/gpu_bank.js';

/** @type {Record<string, [string, string | null, (value: number) => string, string]>} */
const METERS = {
  gpus: ['GPUs', 'gpus', amount, ''],
  cpu: ['CPUs', 'cpus', amount, ''],
  memory_bytes: ['Memory', 'memory_bytes', gibibytes, ' GiB'],
  running: ['Running', null, amount, ''],
};

// The panel; `show` brings it up to date with what is typed, without building anything.
/** @param {Api.Capacity} capacity */
export function roomOf(capacity) {
  const { quota, host, gpus } = capacity;
  const meters = Object.entries(METERS).filter(([key]) => key !== 'gpus' || host.gpus > 0).map(([key, meter]) =>
    meterOf(key, meter, capacity)
  );
  const node = element('section.panel.a-room', { 'aria-labelledby': 'room-h' },
    element('header', element('h2', { id: 'room-h' }, 'Yours with this workspace'),
      element('span.muted.small.ref', host.gpus === 0 ? 'this host has no GPUs; quota ' : 'quota ',
        element('span.mono', quota.name))),
    element('div.body.stack-4', gpus.length > 0 && element('div.bank-box', bank(gpus, { compact: true })),
      element('div.gauges', meters.map(meter => meter.node)),
      element('div.legend-row.tiny.muted', element('span.sw', 'in use'), element('span.sw.mine', 'this workspace'))));
  const slots = findAll('.slot', node);
  return {
    node,
    show(requested, uuids) {
      for (const meter of meters) meter.show(requested);
      gpus.forEach((gpu, at) => mark(slots[at], uuids.includes(gpu.uuid)));
    },
  };
}

function mark(slot, isRequested) {
  if (slot.classList.contains('would') === isRequested) return;
  slot.classList.toggle('would', isRequested);
  if (isRequested) slot.append(element('span.vh', { 'data-would': true }, 'this workspace would get it'));
  else find('[data-would]', slot)?.remove();
}

function meterOf(key, [label, ofHost, form, unit], { quota, used, host }) {
  const most = quota[`max_${key}`] ?? host[ofHost] ?? null, taken = used[key];
  const share = value => `${most ? Math.max(0, Math.min(100, value / most * 100)) : 0}%`;
  const now = drawn('rect', { class: 'now mine', x: share(taken), width: '0', height: '100%' });
  const figure = element('span.v');
  const node = element('div.gauge', { role: 'meter', 'aria-label': label, 'aria-valuemin': 0, 'data-meter': key },
    element('div.row', element('span', label), figure),
    drawn('svg', { class: 'bar', 'aria-hidden': true }, drawn('rect', { x: '0', width: share(taken), height: '100%' }),
      now));
  function show(requested) {
    const value = requested[key];
    const { text, isOver, isMore } = state(value);
    figure.textContent = text;
    figure.classList.toggle('is-danger', isOver);
    setAttribute(now, 'class', `now ${isOver ? 'over' : isMore ? 'warn' : 'mine'}`);
    setAttribute(now, 'width', share(Math.min(value ?? Infinity, Math.max(0, (most ?? 0) - taken))));
    const sum = taken + (value ?? 0);
    setAttribute(node, 'aria-valuenow', Math.min(sum, most ?? sum));
    setAttribute(node, 'aria-valuemax', most ?? Math.max(1, sum));
    setAttribute(node, 'aria-valuetext', `${text}${isOver ? '' : ', with this workspace'}`);
  }
  // A workspace without a limit counts with all that the quota has.
  function state(value) {
    const limit = quota[`max_${key}`];
    if (value === null) {
      const isOver = limit !== null && taken > 0;
      return { isOver, text: isOver
        ? `all wanted, ${form(Math.max(0, limit - taken))}${unit} left`
        : limit === null
        ? 'no limit'
        : `${form(limit)} of ${form(limit)}${unit}` };
    }
    if (limit === null && most !== null)
      return { isOver: false, isMore: taken + value > most,
        text: `${form(taken + value)}${unit}; the host has ${form(most)}${unit}` };
    const left = most === null ? Infinity : Math.max(0, most - taken);
    if (value > left) return { isOver: true, text: `${form(value)}${unit} wanted, ${form(left)}${unit} left` };
    return { isOver: false, text: most === null
      ? `${form(taken + value)}${unit}, no limit`
      : `${form(taken + value)} of ${form(most)}${unit}` };
  }
  return { node, show };
}

// The GPUs that a start would probably take: until the service has said which.
export function likelyGpus({ gpus }, count, mode, least) {
  const fits = gpu => least === null || least === undefined || gpu.vram_bytes === null || gpu.vram_bytes >= least;
  const free = gpus.filter(gpu => (gpu.state === 'free' || (mode === 'shared' && gpu.state === 'shared')) && fits(gpu));
  return free.sort((a, b) => a.holders.length - b.holders.length || (a.vram_bytes ?? 0) - (b.vram_bytes ?? 0)).map(
    gpu => gpu.uuid
  ).slice(0, count);
}
