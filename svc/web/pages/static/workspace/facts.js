// What a workspace is: its template, image, size, files and rules.
import { element } from '../frame/dom.js';
import { shellText } from '../parts/shell_text.js';
import { amount, duration, formatSize, time } from '../frame/format.js';
import { FS_LIST } from '../generated/actions.js';

const LIMIT_LABELS = { cpu_limit: 'CPUs', memory_bytes: 'memory', shm_bytes: 'shared memory', pids_limit: 'processes' };
const IMAGE_LABELS = { ready: ['ok', 'in your store'], missing: ['warn', 'not in your store'],
  pulling: ['busy', 'being pulled'], building: ['busy', 'being built'],
  failed: ['failed', 'its pull or build failed'] };

// `gpuNumber` gives the number of a GPU by its UUID; `upgrade` opens what an upgrade changes.
/** @param {Api.Workspace} record */
export function factsOf(record, { gpuNumber, upgrade }) {
  const { id, template, resources, mounts, env, ports, network, command, idle } = record;
  const facts = [
    ['Id', element('span.mono', id)],
    ['Template',
      element('span',
        element('a', { href: `/templates/${encodeURIComponent(template.name)}`, cmd: ['template get', template.name] },
          template.name), `, revision ${template.revision}`), newerRevision(record, upgrade)],
    ['Image', ...imageFact(record)],
    ['GPUs', ...gpuFact(record, gpuNumber)],
    ['CPUs', limitFact(record, 'cpu_limit', amount)],
    ['Memory', limitFact(record, 'memory_bytes', bytes => formatSize(bytes)),
      resources.shm_bytes !== null && `, shared memory ${formatSize(resources.shm_bytes)}`],
    ['Processes', limitFact(record, 'pids_limit', String)],
    ['Files',
      ...mounts.map(({ root, path, read_only: isReadOnly }) =>
        element('div', element('a', { href: `/files/${encodeURIComponent(root)}`, cmd: [FS_LIST, root] }, root), ' at ',
          element('span.mono', path), isReadOnly && ', read-only')
      )],
    env.length > 0
    && ['Variables',
      ...env.map(({ name, value }) => element('div.mono.clip', { title: `${name}=${value}` }, `${name}=${value}`))],
    ports.length > 0
    && ['Ports',
      ...ports.map(port =>
        element('div.mono', `${port.name} ${port.container_port}${port.kind === 'http' ? '' : ` ${port.kind}`}`)
      )],
    command
    && ['Command', element('div.mono.clip', { title: shellText(command) }, shellText(command))],
    network && ['Network', element('span.mono', network)],
    ['When idle', idleFact(idle)],
    ['Reboot', record.restart_on_boot ? 'started again' : 'stays stopped'],
    ['Created', time(record.created_at, 'date')],
  ];
  return element('dl.facts', facts.filter(Boolean).flatMap((
    [title, ...content],
  ) => [element('dt', title), element('dd.num', ...content.filter(Boolean))]));
}

function newerRevision({ template, newer_image: isNewerImage }, upgrade) {
  if (!template.newer_revision && !isNewerImage) return null;
  return element('div',
    template.newer_revision ? `Revision ${template.newer_revision} is out. ` : 'Its image was built or pulled again. ',
    element('button.btn.link.small', { key: 'upgrade', cmd: upgrade.cmd, click: upgrade.open }, 'What changes'));
}

function imageFact({ image, image_status: status }) {
  const [kind, text] = IMAGE_LABELS[status] ?? ['warn', status];
  return [element('div.mono.ref', image.ref), image.digest
    && element('div.mono.muted', { title: image.digest }, `${image.digest.slice(0, 15)}…${image.digest.slice(-7)}`),
    element('div', { class: `state ${kind}` }, text)];
}

function gpuFact({ gpus, resources, status }, gpuNumber) {
  const count = resources.gpu_count ?? 0;
  if (gpus.length > 0) {
    const isShared = gpus.some(gpu => gpu.mode === 'shared');
    return [
      element('span.gpus', gpus.map(gpu =>
        element('span', { class: `chip-n${isShared ? ' half' : ''}`, title: gpu.uuid }, gpuNumber(gpu.uuid))
      ), element('span.muted', isShared ? 'shared' : 'exclusive')),
    ];
  }
  if (count === 0) return ['none'];
  return [`${count}, ${resources.gpu_mode}${status === 'running' ? '' : ', when it starts'}`];
}

function limitFact({ resources, limits_missing: missing }, name, form) {
  const value = resources[name];
  if (value === null || value === undefined) return 'no limit';
  return missing.includes(name)
    ? element('span.is-warn', { title: 'This host cannot apply it' }, `${form(value)}, not applied`)
    : form(value);
}

export const limitText = names => names.map(name => LIMIT_LABELS[name] ?? name).join(', ');

function idleFact({ action, after_minutes: minutes, keep_until: until }) {
  if (action === 'none' || minutes === null) return 'nothing is done';
  const text = action === 'stop'
    ? `stopped after ${duration(minutes * 60)}`
    : `notice after ${duration(minutes * 60)}; never stopped`;
  if (!until || new Date(until) < new Date()) return text;
  return element('span', text, '; kept for ', time(until, 'until'));
}
