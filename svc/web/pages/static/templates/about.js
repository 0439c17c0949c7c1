// A template in words: what it gives, what it brings, what it is made from, and where its image is.
import { call } from '../frame/api.js';
import { element } from '../frame/dom.js';
import { commandText, quoted } from '../frame/commands.js';
import { amount, counted, duration, gibibytes, formatSize, time, commaList } from '../frame/format.js';
import {
  IMAGE_BUILD,
  IMAGE_DELETE,
  IMAGE_PULL,
  TEMPLATE_CLONE,
  TEMPLATE_DELETE,
  TEMPLATE_DISABLE,
  TEMPLATE_EDIT,
  TEMPLATE_ENABLE,
  WORKSPACE_SETUP,
} from '../generated/actions.js';

// What this person calls a template on a command line, and in an address: its name where that means no other.
/** @param {Api.Template} template */
export function referenceOf(template, others = []) {
  const isOther = other => other.scope === 'private' && other.name === template.name && other.id !== template.id;
  return template.scope === 'global' && others.some(isOther) ? template.id : template.name;
}

// The template in the API.
/** @type {(template: {id: string}) => `/api/templates/${string}`} */
export const apiPathOf = ({ id }) => `/api/templates/${encodeURIComponent(id)}`;

// Its newest build or pull, or null.
/** @param {{id: string}} template */
export const newestOperation = async ({ id }, options) =>
  (await call('GET', `/api/operations?kind=build,pull&limit=1&subject=${encodeURIComponent(id)}`, options)).items[0]
    ?? null;

export const addressOf = (reference, tab = '') => `/templates/${encodeURIComponent(reference)}${tab && `/${tab}`}`;

export function gives({ defaults, limits, gpu }) {
  const number = defaults.gpu_count ?? 0;
  const memory = gpu?.min_vram_bytes ? ` with ${gibibytes(gpu.min_vram_bytes)} GiB` : '';
  const gpus = number === 0
    ? 'no GPU'
    : `${defaults.gpu_mode === 'shared' ? `${number} shared` : number} ${number === 1 ? 'GPU' : 'GPUs'}${memory}`;
  const most = commaList(limits.gpu_count !== undefined && counted(limits.gpu_count, 'GPU'), cpusAndMemory(limits));
  return commaList(gpus, cpusAndMemory(defaults)) + (most && `; at most ${most}`);
}

const cpusAndMemory = ({ cpu_limit: cpus, memory_bytes: memory }) =>
  commaList(cpus && `${amount(cpus)} ${cpus === 1 ? 'CPU' : 'CPUs'}`, memory && `${gibibytes(memory)} GiB`);

export function brings({ launchers, ports, idle }) {
  const served = new Set(launchers.map(launcher => launcher.port));
  const parts = [...launchers.map(launcher => launcher.title || launcher.name),
    ...ports.filter(port => !served.has(port.name)).map(port => `port ${port.name} ${port.container_port ?? ''}`)].join(
      ', '
    );
  const end = idle.action === 'stop' ? `stops after ${duration(idle.after_minutes * 60)} idle` : '';
  return [parts, end].filter(Boolean).join('; ') || 'nothing';
}

export function originOf({ source, cloned_from: origin }, nameOf = id => id) {
  if (source.type === 'registry') return source.image_ref;
  return commaList(`Dockerfile${source.context_files ? `, ${counted(source.context_files, 'file')}` : ''}`,
    origin && `cloned from ${nameOf(origin)}`);
}

// Whether workspaces can be made from it only after a build in the person's own store.
/** @param {{source: Api.Source}} template */
export const isBuilt = template => template.source.type === 'dockerfile';
/** @param {Api.Template} template */
export const needsBuild = (template, image) => isBuilt(template) && image?.status !== 'ready';

// Who may change it: the owner of a private one, who alone sees it, and administrators a global one; disabled
// global ones are seen by them alone.
/**
 * @param {Api.Template} template
 * @param {Api.SessionAnswer} [session]
 */
export const mayChange = (template, session = null) =>
  template.scope === 'private' || template.status === 'disabled' || Boolean(session?.user.superuser);

// Whether its image can be neither pulled nor built: its registry is not allowed, and the store does not have it.
export const NOT_ALLOWED = 'registry_not_allowed';
/** @param {Api.Template} template */
export const isBarred = (template, image) =>
  image?.status !== 'ready' && template.findings.some(finding => finding.code === NOT_ALLOWED);

/** @param {Api.Template} template */
export function tagOf(template, image) {
  if (template.status === 'enabled')
    return isBarred(template, image)
      ? element('span.tag.danger', 'registry not allowed')
      : null;
  if (template.scope === 'global' && template.reviewed_revision !== template.revision)
    return element('span.tag.warn', 'waits for a review');
  return element('span.tag.warn',
    template.scope === 'private' && needsBuild(template, image) ? 'needs a build' : 'not enabled');
}

// Where the image is: a shape, a word, and how far it has come.
export function imageState(image) {
  const status = image?.status ?? 'missing', verb = image?.ref.startsWith('localhost/svc/') ? 'build' : 'pull';
  if (status === 'ready')
    return element('span.state.ok', `in your store${image.size_bytes ? `, ${formatSize(image.size_bytes)}` : ''}`);
  if (status === 'pulling' || status === 'building' || image?.operation)
    return element('span.state.busy', under(image));
  if (status === 'failed')
    return element('span.state.failed', { title: image.error ?? '' },
      element('span', `${verb} failed`, ...image.updated_at ? [', ', time(image.updated_at, 'ago')] : []));
  return element('span.state.stopped', 'not in your store');
}

function under({ status, operation }) {
  const text = operation?.phase === 'building' || (status === 'building' && !operation)
    ? 'building'
    : operation?.status === 'queued'
    ? 'queued'
    : operation?.phase || 'pulling';
  const { current, total, unit } = operation?.progress ?? {};
  const far = unit === 'bytes' && total ? `${Math.floor(100 * (current ?? 0) / total)} %` : farOf(operation?.progress);
  return far ? `${text}, ${far}` : text;
}

// How far an operation has come: bytes or steps.
export function farOf(progress) {
  const { current, total, unit, seconds_left: left } = progress ?? {};
  if (unit === 'steps' && total) return `step ${current} of ${total}`;
  if (unit !== 'bytes' || !total) return '';
  return `${gibibytes(current ?? 0)} of ${gibibytes(total)} GiB${
    Number.isInteger(left) ? `, about ${duration(left)} left` : ''
  }`;
}

// The commands of a template, by action.
export function commandsOf(reference) {
  const own = (row, ...more) => [row, reference, ...more];
  return {
    get: own('template get'),
    image: own('image status'),
    use: own(WORKSPACE_SETUP, `${reference}-1`),
    clone: to => own(TEMPLATE_CLONE, to),
    build: own(IMAGE_BUILD),
    pull: own(IMAGE_PULL),
    enable: (revision = null) => own(TEMPLATE_ENABLE, ['--revision', revision]),
    disable: own(TEMPLATE_DISABLE),
    delete: own(TEMPLATE_DELETE, '--yes'),
    removeImage: own(IMAGE_DELETE, '--yes'),
    export: own('template export', '--out', `${reference}.tar`),
    dockerfile: own('template dockerfile'),
    save: (revision = null) => own('template dockerfile', '--set', '--file', 'Dockerfile', ['--revision', revision]),
    edit: (patch = null, revision = null) =>
      patch
        ? `echo ${quoted(JSON.stringify(patch))} | ${commandText(own(TEMPLATE_EDIT, '-', ['--revision', revision]))}`
        : own(TEMPLATE_EDIT, 'patch.json'),
    diff: (from = null, to = null) => own('template diff', ['--from', from], ['--to', to]),
    revisions: own('template revisions'),
  };
}

export function bytes(count) {
  return count < 1024
    ? `${count} bytes`
    : count < 2 ** 20
    ? `${(count / 1024).toFixed(1)} KiB`
    : `${(count / 2 ** 20).toFixed(1)} MiB`;
}
