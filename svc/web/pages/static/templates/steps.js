// What is left until a template can be used, and what was found in it.
import { element, icon, panel } from '../frame/dom.js';
import { formatSize, commaList } from '../frame/format.js';
import { cancelCommand } from '../parts/cancelling.js';
import { NOT_ALLOWED, commandsOf, farOf, isBarred, isBuilt, mayChange } from './about.js';
import { pressable } from './page.js';

/** @param {Api.Finding} finding */
const isRefused = finding => finding.code === NOT_ALLOWED;
/** @param {Api.Template} template */
const verbOf = template => (isBuilt(template) ? 'build' : 'pull');

// What comes next: registries, build, enable or use.
export function nextOf({ template, image, session }) {
  if (template.status === 'enabled') return isBarred(template, image) ? 'registries' : 'use';
  if (!mayChange(template, session)) return 'none';
  if (template.findings.some(isRefused)) return 'registries';
  return isBuilt(template) && !template.source.local_only && image?.status !== 'ready' ? 'build' : 'enable';
}

// The commands that are left.
export function restOf(known) {
  const { template, image, reference } = known, commands = commandsOf(reference);
  const fetched = image?.status === 'ready' ? [] : [isBuilt(template) ? commands.build : commands.pull];
  const enabled = template.status === 'enabled' ? [] : [commands.enable(template.revision)];
  return isBuilt(template) && !template.source.local_only ? [...fetched, ...enabled] : [...enabled, ...fetched];
}

// `known`: template, image, operation (the newest build or pull), checked (what it would download; undefined while
// asked), reference, session. `act`: build, pull, enable, cancel; `isPlain` while another button of the page is the
// primary one.
export function stepsPanel(known, act, { isPlain = false, title = 'Until it can be used', buttons = null } = {}) {
  const { template } = known;
  const registries = registriesStep(known), fetched = fetchStep(known, act, isPlain),
    enabled = enableStep(known, act, isPlain);
  const steps = isBuilt(template) && !template.source.local_only
    ? [registries, fetched, enabled]
    : [registries, enabled, fetched];
  const isReady = template.status === 'enabled' && steps.every(step => step.kind === 'done');
  return panel('steps-h', isReady ? 'It can be used' : title, null,
    element('div.body', element('ol.steps', steps.map(stepItem))), buttons && element('footer', buttons));
}

function stepItem({ kind, title, detail, button, more }, at) {
  const text = { done: 'done', now: 'under way', bad: 'failed' }[kind];
  return element('li', { class: kind || null },
    element('span.pip', kind === 'done' ? icon('check') : String(at + 1), text && element('span.vh', text)),
    element('div', element('span', title),
      detail && element('span', { class: kind === 'bad' ? 'small is-danger ref' : 'muted small ref' }, detail),
      ...[more ?? []].flat(), button && element('div.row', button)));
}

function registriesStep({ template, session }) {
  const refusals = template.findings.filter(isRefused).map(finding => finding.message);
  if (refusals.length === 0) return { kind: 'done', title: 'Registries allowed' };
  const button = session?.user.superuser
    ? element('a.btn.sm', { href: '/admin/registries', cmd: ['image allowlist'], key: 'registries' }, 'Registries')
    : null;
  return { kind: 'bad', title: 'Registries allowed',
    detail: `${refusals.join('; ')}. ${
      session?.user.superuser ? '' : 'Administrators say which registries images may come from.'
    }`, button };
}

function enableStep(known, act, isPlain) {
  const { template, reference, session } = known, command = commandsOf(reference).enable(template.revision);
  if (template.status === 'enabled')
    return { kind: 'done', title: 'Enabled', detail: `revision ${template.reviewed_revision ?? template.revision}` };
  const next = nextOf(known);
  if (!mayChange(template, session)) return { kind: '', title: 'Enable it', detail: 'an administrator does' };
  const why = next === 'build' ? 'Build it first.' : next === 'registries' ? 'The registry is not allowed here.' : '';
  const detail = template.scope === 'global' && template.reviewed_revision
    ? `revision ${template.revision}; workspaces keep theirs, and say that it is out`
    : `revision ${template.revision}, as it is now`;
  const kind = `sm${next === 'enable' && !isPlain ? ' primary' : ''}`;
  return { kind: '', title: 'Enable it', detail,
    button: pressable(`Enable revision ${template.revision}`, { kind, cmd: command, key: 'enable', why,
      run: act.enable }) };
}

function fetchStep(known, act, isPlain) {
  const { template, image, operation, checked, reference } = known, verb = verbOf(template),
    commands = commandsOf(reference);
  const isOpen = operation && ['queued', 'running'].includes(operation.status);
  const title = verb === 'build'
    ? `Build revision ${template.revision} in your store`
    : 'Pull its image into your store';
  if (isOpen) {
    const cancel = pressable('Cancel', { kind: 'sm', cmd: cancelCommand(operation.id), key: 'cancel',
      run: act.cancel });
    return { kind: 'now', title,
      detail: commaList(operation.status === 'queued' ? 'queued' : operation.phase, farOf(operation.progress)),
      button: cancel };
  }
  if (image?.status === 'ready')
    return { kind: 'done',
      title: verb === 'build' ? `Revision ${template.revision} is built` : 'Its image is in your store',
      detail: image.size_bytes ? formatSize(image.size_bytes) : '' };
  const isDisabled = template.status === 'disabled', waits = isDisabled && verb === 'pull';
  const why = template.findings.some(isRefused) ? 'The registry is not allowed here.' : waits ? 'Enable it first.' : '';
  const kind = `sm${
    verb === 'build' && isDisabled && !why && !isPlain && mayChange(template, known.session) ? ' primary' : ''
  }`;
  const again = operation?.status === 'failed' || operation?.status === 'cancelled';
  const button = pressable(verb === 'build' ? `Build${again ? ' again' : ' it'}` : `Pull${again ? ' again' : ' it'}`, {
    kind,
    cmd: commands[verb],
    key: verb,
    why,
    run: act[verb],
  });
  const own = image?.status === 'failed' && verb === 'pull' && template.source.has_dockerfile
    ? pressable('Build it instead', { kind: 'sm', cmd: commands.build, key: 'build', run: act.build })
    : null;
  const failed = image?.status === 'failed' ? image.error || operation?.error?.message || 'it failed' : '';
  if (failed) return { kind: 'bad', title, detail: failed, button: [button, own].filter(Boolean) };
  const detail = [checkedText(checked), waits || verb === 'build' ? '' : 'the first set-up does it too'].filter(
    Boolean
  ).join('; ');
  return { kind: checked && !checked.fits ? 'bad' : '', title, detail, button };
}

// What it would download, said before it begins; its line stands there before the answer, so that no button moves.
function checkedText(checked) {
  if (!checked) return checked === null ? '' : 'checking';
  if (!checked.fits) return checked.message ?? 'it does not fit';
  return checked.download_bytes
    ? `${formatSize(checked.download_bytes)} to load, ${formatSize(checked.free_bytes)} free`
    : 'nothing to load';
}

// ---- findings ----

const KINDS = { [NOT_ALLOWED]: ['is-danger', 'close', 'refused'], refused: ['is-danger', 'close', 'refused'],
  ports: ['muted', 'info', 'note'], bundle_digest: ['muted', 'info', 'note'], changed: ['muted', 'info', 'note'],
  root_user: ['muted', 'info', 'note'] }; // in a rootless store, root inside is the user

/**
 * `lineOf` gives the link to the line of a finding, `more` a button; both may be null.
 * @param {Api.Template} template
 * @param {{lineOf: (finding: Api.Finding) => Element | null, more?: (finding: Api.Finding) => Element | null}} parts
 */
export function findingsPanel(template, { lineOf, more = () => null }) {
  const { findings } = template;
  const row = finding => {
    const [kind, picture, text] = KINDS[finding.code] ?? ['is-warn', 'warning', 'warning'];
    return element('div.finding', element('span', { class: kind }, icon(picture), element('span.vh', text)),
      element('div.stack', element('span.ref', finding.message),
        element('div.row', element('span.muted.tiny.mono', finding.code), finding.line !== null && lineOf(finding),
          more(finding))));
  };
  return panel('found-h', 'What was found',
    element('span', { class: findings.length ? 'count warn' : 'count' }, String(findings.length)), findings.length
    ? findings.map(row)
    : element('div.body', element('p.muted.small', 'Nothing that a review should look at.')));
}
