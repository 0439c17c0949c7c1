// One GPU: its slot in the bank, its row, and what is to be done when the driver has it no more.
import { bar, element, icon, notice, setAttribute, stateMark } from '../frame/dom.js';
import { rowButton } from '../parts/row_buttons.js';
import { cell } from '../parts/tables.js';
import { bytesOf } from './quota_format.js';
import { stopCommand } from './stopping.js';
import { time } from '../frame/format.js';

const STATES = {
  free: ['stopped', 'Free'],
  leased: ['ok', 'Leased'],
  shared: ['ok', 'Shared'],
  busy: ['warn', 'In use outside'],
  lost: ['failed', 'Lost'],
  unusable: ['failed', 'Unusable'],
};
const PROCESSES = 5;

/** @param {Api.GpuCapacity} gpu */
const leases = gpu => gpu.holders.filter(holder => !holder.outside);
const numberOf = ({ index }) => (index === null ? '–' : String(index));

// What a slot says to an administrator: the owner, and the workspace below.
/** @param {Api.GpuCapacity} gpu */
export function slotOfAdmin(gpu) {
  const own = leases(gpu), others = gpu.holders.filter(holder => holder.outside);
  const [first, ...rest] = own.length ? own : others;
  const kind = gpu.state === 'busy'
    ? 'outside'
    : gpu.state === 'unusable'
    ? 'lost'
    : others.length && own.length
    ? 'outside'
    : gpu.state;
  const text = { free: '', busy: 'in use' }[gpu.state] ?? gpu.state;
  const below = own.length === 0
    ? others.length || gpu.state === 'busy' ? 'outside svc' : ''
    : rest.length
    ? `and ${rest.map(holder => holder.owner).join(', ')}`
    : others.length
    ? 'and outside svc'
    : first.workspace ?? '';
  const title = [gpu.uuid,
    gpu.holders.map(holder => [holder.owner, holder.workspace].filter(Boolean).join('/')).join(', ')].filter(Boolean)
    .join(' · ');
  return element('li', { class: `slot ${kind}`, title }, element('div.n', numberOf(gpu), element('span', text)),
    element('b',
      first?.owner ?? (gpu.state === 'busy' ? 'busy' : gpu.state === 'unusable' ? 'not for svc' : gpu.state)),
    below && element('div.on', below));
}

/** @param {Api.GpuCapacity} gpu */
export function gpuRow(gpu, context) {
  const own = leases(gpu), outside = gpu.holders.filter(holder => holder.outside);
  const [kind, text] = STATES[gpu.state] ?? ['warn', gpu.state];
  const since = own.filter(holder => holder.since);
  return element('tr', { tabindex: '-1' },
    cell(null, '',
      element('div.row.nowrap', element('span', { class: `chip-n ${own.length ? 'other' : 'want'}` }, numberOf(gpu)),
        element('span.muted.tiny.mono.nw', { title: gpu.uuid }, shortened(gpu.uuid)))),
    cell('State', '', stateMark(kind, text)),
    cell('Who', '', ...own.map(holder => whoOf(holder)), ...outsideOf(gpu, outside)),
    cell('Since', 'muted small num nw', ...since.map(holder => element('div', time(holder.since, 'age')))),
    cell('Mode', 'small muted', gpu.mode ?? ''), cell('Busy', '', ...busyOf(gpu)),
    cell('Memory', 'num small nw', ...memoryOf(gpu)),
    cell(null, 'c-act',
      element('div', { class: own.length > 1 ? 'stack' : 'row' },
        own.filter(holder => holder.workspace_id).map(holder => stopButton(holder, own.length > 1, context)))));
}

const shortened = uuid => (uuid.length > 13 ? `${uuid.slice(0, 12)}…` : uuid);

const whoOf = ({ owner, workspace }) =>
  element('div', element('span.name.ref', owner), ' ', element('span.muted.small.mono.ref', workspace ?? ''));

// Who uses it outside svc, and with which processes.
function outsideOf({ processes }, holders) {
  const lines = processes.slice(0, PROCESSES).map(({ pid, owner, used_bytes: used }) =>
    element('div', element('span.name.ref', owner), ' ',
      element('span.muted.small', `outside svc, process ${pid}${used === null ? '' : `, ${bytesOf(used)}`}`))
  );
  if (processes.length > PROCESSES)
    lines.push(element('div.muted.small', `and ${processes.length - PROCESSES} more processes`));
  if (processes.length === 0)
    return holders.map(({ owner }) =>
      element('div', element('span.name.ref', owner), ' ', element('span.muted.small', 'outside svc'))
    );
  return lines;
}

function busyOf({ use_percent: percent }) {
  if (percent === null) return [];
  return [
    element('div.row.nowrap.num.small', bar(percent), element('span.nw', `${percent} %`)),
  ];
}

function memoryOf({ used_bytes: used, vram_bytes: all }) {
  if (used === null) return all === null ? [] : [element('span.muted', bytesOf(all))];
  return [element('span', { title: all === null ? null : `of ${bytesOf(all)}` }, bytesOf(used))];
}

// A GPU of several workspaces has a button for each, which says whose it is.
function stopButton(holder, isOne, { isOffline, stopping, stop }) {
  const name = `${holder.workspace} of ${holder.owner}`;
  const isBusy = stopping.has(holder.workspace_id);
  const button = rowButton(`stop-${holder.workspace_id}`, isOne ? `Stop ${holder.workspace}` : 'Stop', name,
    stopCommand({ id: holder.workspace_id, owner: holder.owner }), { isOffline: isOffline || isBusy,
    press: () => stop(holder) });
  button.setAttribute('aria-label', `Stop ${name}`);
  setAttribute(button, 'aria-busy', isBusy);
  return button;
}

// The driver lists it no more: who is hit, and what gives the lease back.
/** @param {Api.GpuCapacity} gpu */
export function lostNotice(gpu, { isOffline, stopping, stop }) {
  const own = leases(gpu);
  const text = own.length === 0
    ? ['The driver has it no more; nobody holds it.']
    : ['The driver has it no more; ',
      ...own.flatMap((holder, at) => [at > 0 && ', ', element('span.mono', holder.owner)]),
      own.length === 1 ? ' holds it' : ' hold it', own[0].since && [' since ', time(own[0].since, 'age')],
      '. Stopping that workspace gives the lease back; with the GPU back, or another one free, it starts as before.']
      .flat();
  const buttons = own.filter(holder => holder.workspace_id).map(holder =>
    element('button.btn.sm.danger', { cmd: stopCommand({ id: holder.workspace_id, owner: holder.owner }),
      key: `lost-${holder.workspace_id}`, 'aria-disabled': isOffline || stopping.has(holder.workspace_id), click: () =>
        stop(holder) }, icon('stop'), element('span.clip', `Stop ${holder.workspace} of ${holder.owner}`))
  );
  return notice('danger', 'warning',
    element('p',
      element('b', gpu.index === null ? `The GPU ${shortened(gpu.uuid)} is lost.` : `GPU ${gpu.index} is lost.`), ' ',
      ...text.filter(Boolean)),
    element('div.row', buttons,
      element('a.btn.sm.quiet', { href: '/admin/host', cmd: ['admin doctor'], key: `host-${gpu.uuid}` },
        'What the host says')));
}
