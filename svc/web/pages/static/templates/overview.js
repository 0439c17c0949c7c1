// What a template is: all of its fields in words, and who uses it.
import { element, panel } from '../frame/dom.js';
import { amount, counted, gibibytes, formatSize, time, commaList } from '../frame/format.js';
import { shellText } from '../parts/shell_text.js';
import { addressOf, bytes, commandsOf, imageState, isBuilt, mayChange } from './about.js';
import { pressable } from './page.js';

const mono = text => element('span.mono.ref', text);
const row = (title, ...content) => [element('dt', title), element('dd', ...content)];
const listed = (items, show) => element('ul.stack', items.map(item => element('li', ...[show(item)].flat())));

export function overviewPanel({ template, image, reference, session, origin }, { edit, clone }) {
  const commands = commandsOf(reference);
  const button = mayChange(template, session)
    ? pressable('Edit', { kind: 'sm', cmd: commands.edit(), key: 'edit', run: edit })
    : pressable('Clone it to change it', { kind: 'sm', cmd: commands.clone(`my-${template.name}`), key: 'clone-first',
      run: clone });
  return panel('about-h', 'What it is', element('div.actions', button),
    element('div.body',
      element('dl.facts', template.description && row('For', template.description),
        row('Whose', template.scope === 'global' ? "everybody's" : 'yours alone',
          template.managed ? ', managed by the host' : ''), template.cloned_from
        && row('Cloned from',
          element('a.mono', { href: addressOf(template.cloned_from), cmd: commandsOf(template.cloned_from).get },
            origin ?? template.cloned_from)), ...sourceRows(template), row('Image', imageState(image)),
        ...fieldRows(template),
        row('Made', time(template.created_at, 'ago'), '; changed ', time(template.updated_at, 'ago')))));
}

// Everything that a template gives a workspace, starts in it, or lets it reach.
/** @param {Api.Template} template */
export const fieldRows = template =>
  [...resourceRows(template), ...gpuRows(template), ...insideRows(template),
    template.network && row('Network', mono(template.network)), row('When idle', idleText(template.idle))].filter(
      Boolean
    );

export function sourceRows({ source }) {
  const context = source.context_files
    ? `, built with ${counted(source.context_files, 'file')} (${bytes(source.context_bytes)})`
    : '';
  if (!isBuilt({ source }))
    return [
      row('Made from', mono(source.image_ref),
        source.has_dockerfile ? '; its Dockerfile is published, for those whose download fails' : ''),
    ];
  return [row('Made from', `its Dockerfile${context}`, source.local_only ? '; each user builds the image' : '')];
}

function resourceRows({ defaults, limits }) {
  const text = of =>
    commaList(of.cpu_limit && `${amount(of.cpu_limit)} ${of.cpu_limit === 1 ? 'CPU' : 'CPUs'}`,
      of.memory_bytes && formatSize(of.memory_bytes), of.gpu_count !== undefined
      && (of.gpu_count ? counted(of.gpu_count, of.gpu_mode === 'shared' ? 'shared GPU' : 'GPU') : 'no GPU'),
      of.shm_bytes && `${formatSize(of.shm_bytes)} of shared memory`,
      of.pids_limit && counted(of.pids_limit, 'process', 'processes'));
  return [row('By default', text(defaults) || 'all of the host'), row('At most', text(limits) || 'up to the quota')];
}

function gpuRows({ gpu }) {
  const parts = [gpu.min_cuda && `CUDA ${gpu.min_cuda}`,
    gpu.min_vram_bytes && `${gibibytes(gpu.min_vram_bytes)} GiB of GPU memory`,
    gpu.min_compute_capability && `compute capability ${gpu.min_compute_capability}`].filter(Boolean);
  return [parts.length > 0 && row('Needs', `at least ${parts.join(', ')}`),
    gpu.allow_shared && row('Sharing', 'workspaces may share their GPUs')].filter(Boolean);
}

function insideRows({ command, run_as: user, env, defaults, launchers, ports, mounts }) {
  const variable = one =>
    [mono(one.name),
      one.secret ? one.is_set ? ' secret, set' : ' secret, without a value' : [' ', mono(one.value ?? '')]].flat();
  const launcher = one =>
    [one.title || one.name, ' ', mono(shellText(one.command)), one.port ? ` on port ${one.port}` : '',
      one.autostart ? ', starts by itself at every start' : '',
      one.env?.length ? [', with ', mono(one.env.map(({ name, value }) => `${name}=${value}`).join(' '))] : '',
      ...tokenText(one.token)].flat();
  const values = defaults.env ?? [];
  const port =
    one => [mono([one.name, one.container_port].filter(Boolean).join(' ')),
      (one.kind ?? 'http') === 'http' ? '' : ` ${one.kind}${one.user ? ` as ${one.user}` : ''}`,
      one.access === 'host' ? ', open to every user of the host' : ''];
  const mount = one => [mono(one.path), ' is ', mono(one.root), one.read_only ? ', read-only' : ''];
  return [command && row('Command', mono(shellText(command))),
    user && row('User', `you are uid ${user.uid}, gid ${user.gid} inside`),
    env.length > 0 && row('Variables', listed(env, variable)),
    values.length > 0 && row('Variables, changeable', listed(values, variable)),
    launchers.length > 0 && row('Apps', listed(launchers, launcher)),
    ports.length > 0 && row('Ports', listed(ports, port)), mounts.length > 0 && row('Mounts', listed(mounts, mount))]
    .filter(Boolean);
}

function tokenText(token) {
  if (!token) return [];
  return [', its token is read from ', ...(token.file ? [mono(token.file)] : ['its output']),
    ...(token.pattern ? [' as ', mono(token.pattern)] : []),
    ...(token.link ? [' and goes to ', mono(token.link)] : [])];
}

/** @param {Api.Idle} idle */
function idleText({ action, after_minutes: minutes }) {
  if (!minutes || action === 'none') return 'no policy';
  return `${action === 'stop' ? 'stopped' : 'noted'} after ${minutes} idle minutes`;
}

// ---- who uses it ----

export function usersPanel({ image, revisions }) {
  const used = revisions.filter(revision => revision.workspaces > 0), names = image?.used_by ?? [];
  if (used.length === 0) return element('p.muted.small', 'No workspace was made from it yet.');
  return panel('users-h', 'Who uses it', null,
    element('div.body.stack-2',
      element('ul.stack',
        used.map(one =>
          element('li',
            `Revision ${one.revision}: ${counted(one.workspaces, 'workspace')}${
              one.is_current ? '' : ', which can be moved to the newest'
            }`)
        )), names.length > 0
      && element('p', 'Yours with its image: ',
        names.map((name,
          at) => [at ? ', ' : '', element('a.mono', { href: `/workspaces/${encodeURIComponent(name)}` }, name)]
        ).flat())));
}
