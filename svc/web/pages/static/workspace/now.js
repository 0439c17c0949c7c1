// What a running workspace uses now: meters, read every two seconds while somebody looks at them.
import { call } from '../frame/api.js';
import { element, replace } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { formatSizeOf, formatSize } from '../frame/format.js';
import { meter } from '../parts/headroom.js';

const USE_EVERY_MS = 2000, USE_OFFLINE_MS = 8000;
const watched = { path: '', place: null, gpuName: null, timer: null, isAsking: false, error: null };

// Follow the use at this path, null to end it; `gpuName` gives the number of a GPU by its UUID.
export function followUse(path, place, gpuName) {
  const isOther = path !== watched.path;
  Object.assign(watched, { path, place, gpuName });
  if (!path) {
    clearTimeout(watched.timer);
    return;
  }
  if (isOther) nextUse(0);
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden && watched.path) nextUse(0);
});

function nextUse(after) {
  clearTimeout(watched.timer);
  watched.timer = setTimeout(askUse, after);
}

async function askUse() {
  const { path } = watched;
  if (!path || document.hidden || watched.isAsking) return;
  watched.isAsking = true;
  try {
    const sample = await call('GET', `${path}/monitor`, { background: true });
    if (path === watched.path) replace(watched.place, ...metersOf(sample, watched.gpuName));
  } catch (error) {
    if (path === watched.path && error.status && error.status !== 401)
      replace(watched.place, element('p.muted.small', `Not measured: ${error.message}.`));
  } finally {
    watched.isAsking = false;
    if (watched.path) nextUse(isOffline() ? USE_OFFLINE_MS : USE_EVERY_MS);
  }
}

const one = value => value.toFixed(1);

function metersOf(sample, gpuName) {
  const cores = sample.cpu_percent / 100;
  const { cpu_limit: cpus, memory_bytes: memory, memory_limit_bytes: most } = sample;
  return [
    useOf('CPU', cores, cpus,
      cpus === null ? `${one(cores)} cores, no limit` : `${one(cores)} of ${cpus} ${cpus === 1 ? 'core' : 'cores'}`),
    useOf('Memory', memory, most, most === null ? `${formatSize(memory)}, no limit` : formatSizeOf(memory, most)),
    ...sample.gpus.map(gpu => gpuMeter(gpu, gpuName)),
  ];
}

function gpuMeter({ uuid, vram_bytes: vram, used_bytes: used, utilization_percent: percent, model }, gpuName) {
  if (model === null) return useOf(gpuName(uuid), 0, 100, 'lost');
  const text = [percent === null ? null : `${percent} %`, vram === null ? formatSize(used) : formatSizeOf(used, vram)];
  return useOf(gpuName(uuid), percent ?? 0, 100, text.filter(Boolean).join(', '));
}

const useOf = (label, value, most, text) => meter(label, value, most, text, most && value > most ? 'over' : 'mine');
