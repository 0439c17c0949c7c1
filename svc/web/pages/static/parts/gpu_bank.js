// The GPUs of the host, one slot each, in its own order.
import { element } from '../frame/dom.js';
import { commaList } from '../frame/format.js';

export function bank(gpus, { compact = false } = {}) {
  return element('ul', { class: `bank${compact ? ' compact' : ''}`, 'aria-label': 'GPUs of this host' },
    gpus.map(slot));
}

function slot(gpu) {
  const { kind, label, who, how } = slotOf(gpu);
  const holders = gpu.holders.map(holder => commaList(holder.owner, holder.workspace)).join('; ');
  return element('li', { class: `slot ${kind}`, title: [gpu.uuid, holders].filter(Boolean).join(' · ') },
    element('div.n', gpu.index === null ? '–' : String(gpu.index), element('span', label)), element('b', who),
    how && element('div.on', how));
}

const nameOf = holder => holder.workspace ?? holder.owner;

// What a slot says, by the GPU's state and who holds it.
function slotOf({ state: name, mode, holders }) {
  const own = holders.find(holder => holder.mine && !holder.outside);
  const others = holders.filter(holder => holder !== own);
  if (name === 'lost')
    return { kind: 'lost', label: 'lost', who: own ? nameOf(own) : 'lost', how: own ? 'restart it' : '' };
  if (name === 'unusable') return { kind: 'lost', label: 'unusable', who: 'not for svc', how: '' };
  if (holders.some(holder => holder.outside)) {
    const outside = holders.find(holder => holder.outside);
    return { kind: own ? 'outside mine' : 'outside', label: 'in use', who: outside.owner,
      how: own ? `outside svc, with ${nameOf(own)}` : 'outside svc' };
  }
  if (own && mode === 'shared') {
    return { kind: 'shared mine', label: 'shared', who: nameOf(own), how: others.length
      ? `with ${others.map(holder => holder.owner).join(', ')}`
      : 'nobody else yet' };
  }
  if (own) return { kind: 'mine', label: 'yours', who: nameOf(own), how: 'exclusive' };
  if (holders.length)
    return { kind: 'leased', label: mode === 'shared' ? 'shared' : 'leased', who: holders.map(nameOf).join(', '),
      how: mode ?? '' };
  return name === 'busy'
    ? { kind: 'outside', label: 'in use', who: 'busy', how: 'outside svc' }
    : { kind: 'free', label: '', who: 'free', how: '' };
}

// "8 × NVIDIA H100 80GB HBM3"
export function modelsOf(gpus) {
  const counts = new Map();
  for (const { model } of gpus) if (model) counts.set(model, (counts.get(model) ?? 0) + 1);
  return [...counts].map(([model, count]) => `${count} × ${model}`).join(', ');
}
