// The plan panel: the steps of the request, or the reasons against it with the buttons that resolve them.
import { element, notice, panel, empty } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { hintOf, ifMeant, refused, sentence } from '../frame/notices.js';
import { NOT_ALLOWED, picksOf } from './picks.js';
import { counted, gibibytes, formatSize } from '../frame/format.js';

export const templatePicks = picksOf; // loaded with this file, which comes beside what is read

// The panel and its bar of buttons: {plan, bar}.
// `facts`: what is known, the template, the name, what is wanted, the GPUs that are free, the commands, what is busy.
export function planOf(facts, on) {
  const { known, template, free, busy, problem, requested } = facts, { check } = known,
    loads = known.loads.get(template.id);
  // Until the images are read, the check knows whether this one is there.
  const image = known.images?.get(template.id) ?? { status: check?.image_status ?? 'ready' };
  const refusal = loads?.error?.code === NOT_ALLOWED ? loads.error : null,
    isUnknown = loads?.error && !refusal && image.status !== 'ready';
  const state = {
    ...facts,
    check,
    image,
    refusal,
    gpus: requested.gpus,
    loads: loads?.found ?? null,
    isAsking: Boolean(loads?.isAsking),
    isOffline: isOffline(),
    isBusy: busy,
    verb: template.source.type === 'dockerfile' ? 'build' : 'pull',
    problem: problem
      ?? (isUnknown ? refused(loads.error, { what: 'What there is to load is not known.', answers: false }) : null),
  };
  const blocks = blocksOf(state);
  if (blocks.length === 0) return { plan: ready(state), bar: barOf(state, on) };
  const why = whatNot(blocks, state);
  return { plan: blocked(blocks, { ...state, why, mends: mendsOf(requested, known.capacity, free) }, on),
    bar: blockedBar(why, state, on) };
}

// The blocks of the check and of the image; a name in use is an error of its field.
function blocksOf({ check, loads, image, refusal }) {
  const found = (check?.blocked_by ?? []).filter(block => block.code !== 'name_taken');
  if (loads && !loads.fits && image.status !== 'ready')
    found.push({ code: loads.blocked_by, message: loads.message, hint: loads.hint, action: loads.action });
  if (refusal && image.status !== 'ready') found.push(refusal);
  return found;
}

// False where the quota forbids creating or the registry forbids pulling: nothing could be started later.
function whatNot(blocks, { known, loads, image }) {
  const left = known.capacity.remaining.workspaces, isLoadable = image.status === 'ready' || !loads || loads.fits;
  const isCreatable = !blocks.some(({ code }) => ['license_required', NOT_ALLOWED].includes(code)) && isLoadable
    && (left === null || left > 0);
  return { isCreatable, text: isCreatable ? 'This would not start.' : 'This would not be created.' };
}

const needsImage = ({ image }) => image.status !== 'ready';

function ready(state) {
  return panel('plan-h', 'What will happen', null,
    element('div.body.stack-4', numbered(stepsOf(state, needsImage(state))), state.problem));
}

// The bar of buttons; it sticks above the command line.
function barOf(state, on) {
  const { name, gpus, commands, verb } = state;
  const first = needsImage(state) ? `${verb === 'build' ? 'Builds' : 'Pulls'} the image, creates` : 'Creates';
  const label = needsImage(state) ? `${verb === 'build' ? 'Build' : 'Pull'}, create and start` : 'Create and start';
  return [
    element('span.words.muted.small', `${first} `, element('span.name', name),
      gpus ? ` and starts it on ${gpus === 1 ? 'a free GPU' : `${gpus} free GPUs`}` : ' and starts it'),
    button('Create only', { key: 'only', cmd: commands.create, click: on.createOnly }, state),
    button(label, { kind: 'primary', type: 'submit', key: 'go', cmd: commands.both }, state),
  ];
}

const blockedBar = ({ text, isCreatable }, state, on) =>
  [element('span.words.state.warn.small', text),
    isCreatable && button('Create only', { key: 'only', cmd: state.commands.create, click: on.createOnly }, state)]
    .filter(
      Boolean
    );

function stepsOf(state, needsImage) {
  const { name, gpus, check } = state;
  const places = (check?.gpus.length === gpus ? check.gpus : []).map(gpu => gpu.index).filter(index => index !== null)
    .sort((a, b) => a - b);
  return [
    needsImage && [imageStep(state), loadText(state), 'loads'],
    [['Create ', element('span.name.ref', name)], ''],
    [gpus ? `Start it on ${gpus === 1 ? 'a free GPU' : `${gpus} free GPUs`}` : 'Start it',
      gpus ? `${places.length ? `Now ${places.join(' and ')}. ` : ''}Nothing is reserved until then.` : ''],
  ].filter(Boolean);
}

function imageStep({ verb, image }) {
  if (image.status === 'pulling' || image.status === 'building')
    return `Wait for its image, which is being ${image.status === 'pulling' ? 'pulled' : 'built'}`;
  return verb === 'build' ? 'Build the image in your store' : 'Pull the image into your store';
}

// The bytes to download and the free space.
function loadText({ loads, isAsking, image }) {
  if (!loads)
    return isAsking
      ? 'Asking its registry how much there is to load.'
      : image.status === 'failed' && image.error
      ? `The last time: ${image.error}`
      : '';
  const there = loads.present_bytes ? `, ${formatSize(loads.present_bytes)} of its layers are there` : '';
  const room = loads.quota_bytes === null
    ? ''
    : `; your images may take ${formatSize(Math.max(0, loads.quota_bytes - loads.used_bytes))} more`;
  return `${loads.download_bytes ? `${formatSize(loads.download_bytes)} to load` : 'Nothing to load'}${there}. ${
    formatSize(loads.free_bytes)
  } free${room}.`;
}

const numbered = steps =>
  element('ol.steps', steps.map(([title, text, kind = ''], at) =>
    element('li', element('span.pip', String(at + 1)),
      element('div', element('span', title), text && element('span', { class: `muted small num ref ${kind}` }, text)))
  ));

function button(label, { kind = '', type = 'button', key, cmd, click = null }, { isOffline, isBusy, why }) {
  const isOff = Boolean(isOffline || isBusy || why);
  return element('button', {
    class: `btn ${kind}`,
    type,
    form: type === 'submit' ? 'composer' : null,
    key,
    cmd,
    'aria-disabled': isOff,
    'aria-busy': isBusy === key,
    'aria-describedby': why ? 'plan-why' : null,
    on: click
      ? { click: () => {
        if (!isOff) click();
      } }
      : {},
  }, label);
}

// ---- what is in the way ----

function blocked(blocks, state, on) {
  return notice('warn', 'warning', { tabindex: '-1', 'data-blocked': true }, ...blocks.flatMap((block, at) => [
    element('p', at === 0 && element('b', state.why.text), at === 0 && ' ', sentence(block.message)),
    element('div.row',
      ...(at === 0 ? state.mends : []).map(mend =>
        element('button.btn.sm', { key: `mend-${mend.key}`, click: () => on.mend(mend) }, mend.label)
      ), block.action
      && button(block.action.label, { kind: 'sm', key: `act-${at}`, cmd: block.hint,
        click: () => ifMeant(block.action, on.act) }, { ...state, why: '' })),
    ...hintOf(block.hint),
    element('span.code', block.code),
  ]), state.problem);
}

// The reduced values with which it would start, computed from amounts.
function mendsOf(requested, { quota, remaining }, freeGpus) {
  const mends = [];
  const gpus = Math.min(remaining.gpus ?? Infinity, freeGpus);
  if (requested.gpus > gpus && Number.isFinite(gpus))
    mends.push({ key: 'gpu_count', value: gpus, label: gpus === 0 ? 'Use no GPU' : `Use ${counted(gpus, 'GPU')}` });
  const isOver = (value, left, most) => left !== null && (value === null ? most !== null : value > left) && left > 0;
  const cpus = remaining.cpu === null ? null : Math.floor(remaining.cpu * 100) / 100;
  if (isOver(requested.cpu, cpus, quota.max_cpu))
    mends.push({ key: 'cpu_limit', value: cpus, label: `Use ${cpus} CPU${cpus === 1 ? '' : 's'}` });
  const memory = remaining.memory_bytes === null
    ? null
    : remaining.memory_bytes >= 2 ** 30
    ? Math.floor(remaining.memory_bytes / 2 ** 30) * 2 ** 30
    : remaining.memory_bytes;
  if (isOver(requested.memory_bytes, memory, quota.max_memory_bytes))
    mends.push({ key: 'memory_bytes', value: memory, label: `Use ${gibibytes(memory)} GiB` });
  return mends;
}

// ---- beside the form, or instead ----

export const noTemplate = () =>
  empty('No template can be used yet',
    element('p', 'A workspace is made from a template: an image, and what it gets. Make one of your own, or ask an '
      + 'administrator for one that everybody can use.'),
    element('a.btn', { href: '/templates', cmd: ['template list'] }, 'Templates'));

// Links to set-ups that are still running.
export const underWay = ({ id, subject, template }) =>
  notice('inset', 'start',
    element('div.row.between',
      element('p.ref', element('span.name', subject.name),
        ` is being set up${template ? ` from ${template.name}` : ''}.`),
      element('a.btn.sm', { href: `/new?setup=${encodeURIComponent(id)}`, cmd: ['operation watch', id] }, 'Show it')));

export const lostNotice = text => notice('warn.inset', 'warning', { 'data-lost': true }, element('p.ref', text));

// A template's properties, in short.
export function factsOf({ revision, scope, gpu, ports, mounts, launchers }) {
  const needs = [gpu.min_vram_bytes && `with ${gibibytes(gpu.min_vram_bytes)} GiB`,
    gpu.min_compute_capability && `of compute capability ${gpu.min_compute_capability}`].filter(Boolean).join(' and ');
  return [
    `Revision ${revision}, ${scope === 'global' ? "everybody's" : 'yours'}.`,
    needs && `GPUs ${needs}.`,
    gpu.min_cuda && `CUDA ${gpu.min_cuda} or newer.`,
    ports.length > 0
    && `Ports: ${ports.map(port => [port.name, port.container_port].filter(Boolean).join(' ')).join(', ')}.`,
    launchers.length > 0 && `Apps: ${launchers.map(launcher => launcher.name).join(', ')}.`,
    mounts.length > 0
    && `Mounts ${
      mounts.map(mount => `${mount.root} at ${mount.path}${mount.read_only ? ', read-only' : ''}`).join('; ')
    }.`,
  ].filter(Boolean).join(' ');
}

// The starting values in the address: a template, or a workspace to copy; `lost` names what no longer exists.
export function startOf(query, usable, workspaces) {
  const named = query.get('template'), like = query.get('from');
  const source = like && workspaces.find(workspace => [workspace.id, workspace.name].includes(like));
  const found = source
    ? usable.find(template => template.id === source.template.id)
    : named && (usable.find(template => template.id === named) ?? usable.find(template => template.name === named));
  if (found) return { template: found, source, lost: '' };
  const lost = source
    ? `The template of ${source.name}, ${source.template.name}, cannot be used for new workspaces.`
    : like
    ? `You have no workspace ${like}.`
    : named
    ? `There is no template ${named} that can be used.`
    : '';
  return { template: usable[0], source: null, lost };
}
