// Headroom: the GPUs of the host, one slot each in its own order, and what is left of the quota.
import { bank, modelsOf } from './gpu_bank.js';
import { bar, element, panel } from '../frame/dom.js';
import { skeleton } from '../frame/frame.js';
import { amount, counted, gibibytes } from '../frame/format.js';

export function headroom({ quota, used, remaining, host, gpus }) {
  const models = modelsOf(gpus);
  return panel('room-h', 'Yours now', [element('span.muted.small', ...summary(host, quota, remaining)),
    models && element('div.actions', element('span.muted.tiny', models))],
    element('div.headroom', gpus.length > 0 && element('div.bank-box', bank(gpus)),
      element('div.gauges', host.gpus > 0 && ownGauge('GPUs', used.gpus, quota.max_gpus, host.gpus, amount, '', 'mine'),
        gauge('Running', used.running, quota.max_running, amount),
        ownGauge('CPUs', used.cpu, quota.max_cpu, host.cpus, amount),
        ownGauge('Memory', used.memory_bytes, quota.max_memory_bytes, host.memory_bytes, gibibytes, ' GiB'))));
}

// Of a quota; without one beside what the host has, of which others take too: no limit, and nothing is refused.
function ownGauge(label, value, limit, ofHost, form, unit = '', kind = '') {
  if (limit !== null) return gauge(label, value, limit, form, unit, kind);
  return gauge(label, value, ofHost, form, unit, kind, `${form(value)}${unit}; the host has ${form(ofHost)}${unit}`);
}

function summary(host, quota, remaining) {
  const name = element('span.mono', quota.name);
  if (host.gpus === 0) return ['this host has no GPUs; your quota is ', name];
  const free = `${host.gpus_free} of ${counted(host.gpus, 'GPU')} ${
    host.gpus_free === 1 ? 'is' : 'are'
  } free; your quota `;
  return remaining.gpus === null
    ? [free, name, ' has no limit of GPUs']
    : [free, name, ` has ${counted(Math.max(0, remaining.gpus), 'GPU')} left`];
}

// `text` stands for a limit, where `most` is none.
export function gauge(label, value, most, form, unit = '', kind = '', texts = '') {
  const text = texts || (most === null ? `${form(value)}${unit}, no limit` : `${form(value)} of ${form(most)}${unit}`);
  const isOver = most !== null && value > most;
  return meter(label, value, most, text, isOver ? texts ? 'warn' : 'over' : kind);
}

export function meter(label, value, most, text, kind) {
  return element('div.gauge', { role: 'meter', 'aria-label': label, 'aria-valuenow': value, 'aria-valuemin': 0,
    'aria-valuemax': most ?? Math.max(value, 1), 'aria-valuetext': text },
    element('div.row', element('span', label), element('span.v', text)), bar(most ? value / most * 100 : 0, kind));
}

const skeletonText = text => element('span.small', { 'aria-hidden': true }, element('span.skel.words', text));

// The same, while it is read: as high as it will be.
export function headroomSkeleton() {
  const gaugeSkeleton = () =>
    element('div.gauge', element('div.row', skeleton('1'), element('span.push', skeleton('1'))), bar(0));
  const slots = Array.from({ length: 8 }, () => element('li.slot', skeleton('1')));
  return element('section.panel', { 'aria-busy': true, 'aria-label': 'Loading what is yours now' },
    element('header', element('h2', 'Yours now'),
      skeletonText('8 of 8 GPUs are free; your quota default has 8 GPUs left'),
      element('div.actions', skeletonText('8 × NVIDIA H100 80GB HBM3'))),
    element('div.headroom', element('div.bank-box', element('ul.bank', { 'aria-hidden': true }, slots)),
      element('div.gauges', gaugeSkeleton(), gaugeSkeleton(), gaugeSkeleton(), gaugeSkeleton())));
}
