// One template: what it is, its Dockerfile with its build, what changed, and what is left until it can be used.
import { all, call, send } from '../frame/api.js';
import { closestTo, element, find, findAll, icon, setAttribute, empty } from '../frame/dom.js';
import { isOffline, panelSkeleton, skeleton } from '../frame/frame.js';
import { setCommand } from '../frame/foot.js';
import { addressOf, commandsOf, isBarred, isBuilt, mayChange, tagOf, apiPathOf, newestOperation } from './about.js';
import { createLog } from './build.js';
import { cancel, deleteTemplate, disable, enable, fetchImage } from './actions.js';
import { overviewPanel, usersPanel } from './overview.js';
import { announce, answer } from '../frame/notices.js';
import { refreshSoon, showNow, startPage, perform, nextStep } from '../screen/page.js';
import { pressable, putIn } from './page.js';
import { findingsPanel, nextOf, restOf, stepsPanel } from './steps.js';

const [, , asked, tabAsked = ''] = location.pathname.split('/').map(decodeURIComponent);
const known = { template: /** @type {Api.Template} */ (null), tag: null, image: null,
  operation: /** @type {Api.Operation} */ (null), revisions: [], dockerfile: null, checked: null, checkedFor: '',
  origin: null, reference: asked, session: null, difference: null };
const view = { tab: tabAsked, form: null, editor: null, editing: null, log: null, changes: null, from: null, to: null,
  isLeaving: false };

const menuActions = () => import('./menu_actions.js');

// ---- reading ----

async function read(options) {
  const response = await send('GET', `/api/templates/${encodeURIComponent(known.template?.id ?? asked)}`, options);
  const template = await response.json(), path = apiPathOf(template);
  const [image, operation, revisions, dockerfile] = await Promise.all([
    call('GET', `${path}/image`, options),
    newestOperation(template, options),
    all(`${path}/revisions`, options),
    template.source.has_dockerfile ? readText(template, options) : null,
  ]);
  Object.assign(known, { template, tag: response.headers.get('ETag'), image, operation, revisions, dockerfile });
  known.reference = template.scope === 'private' || asked === template.name ? template.name : template.id;
  if (view.tab === 'changes') await readChanges();
}

// The Dockerfile, and the editor's own file.
/** @param {Api.Template} template */
async function readText(template, options) {
  view.editing ??= await import('./editor.js');
  return view.editing.readDockerfile(template, options);
}

// What its pull or build would download: asked of registries, and so never waited for.
async function readChecked() {
  const { template, image } = known, key = `${template.id} ${template.revision} ${image?.status}`;
  if (image?.status === 'ready' || known.operation?.status === 'running'
    || (template.status === 'disabled' && !isBuilt(template)) || known.checkedFor === key) return;
  known.checkedFor = key;
  known.checked = undefined;
  try {
    known.checked = await call('GET', `${apiPathOf(template)}/image/preflight`, {
      background: true,
    });
  } catch {
    known.checked = null; // the pull or build itself says why
  }
  showNow();
}

async function readDifference() {
  const [current, before] = known.revisions.map(revision => revision.revision);
  const to = view.to ?? current, from = view.from ?? before ?? current;
  try {
    known.difference = await call('GET', `${apiPathOf(known.template)}/diff?from=${from}&to=${to}`, {
      background: true,
    });
  } catch (error) {
    if (!('retryable' in error)) throw error;
    known.difference = { before: from, after: to, refusal: error };
  }
}

// ---- showing ----

const act = {
  build: async button => {
    if (await fetchImage(button, known.template, 'build')) await showOperation();
  },
  pull: async button => {
    if (await fetchImage(button, known.template, 'pull')) await showOperation();
  },
  enable: button => enable(button, known.template),
  cancel: button => cancel(button, known.operation),
};

async function showOperation() {
  known.operation = await newestOperation(known.template, { background: true });
  if (view.tab !== 'dockerfile') go('dockerfile');
  else showNow();
}

function frameOfScreen() {
  const part = name => element('div.stack-4', { 'data-part': name, hidden: true });
  find('#screen').replaceChildren(
    element('div.cols.side-r', element('div.stack-4', part(''), part('dockerfile'), part('changes')),
      element('div.stack-4.sticky', element('div', { 'data-steps': true }), element('div', { 'data-findings': true })))
  );
  const place = find('[data-part=dockerfile]');
  place.append(element('div', { 'data-editor': true }),
    element('p.muted', { 'data-image': true, hidden: true },
      'Its image was not pulled here yet; the log is here once it is.'), element('div', { 'data-log-place': true }),
    element('div', { 'data-files-place': true }));
  view.log = createLog(find('[data-log-place]', place));
}

function show() {
  if (!find('[data-part]')) frameOfScreen();
  const { template } = known;
  showHead();
  showTabs();
  if (template.source.has_dockerfile && !view.editor)
    view.editor = view.editing.createEditor(find('[data-editor]'), { build: act.build, clone: askForClone,
      changed: () => showSteps(), filesPlace: find('[data-files-place]'),
      page: { announce, answer, action: perform, nextStep, pressable, put: putIn } });
  view.editor?.update({ template, dockerfile: known.dockerfile, reference: known.reference, next: nextOf(known) });
  if (!view.form) putIn(find('[data-part=""]'), overviewPanel(known, { edit, clone: askForClone }), usersPanel(known));
  find('[data-image]').hidden = template.source.has_dockerfile || known.operation !== null;
  const isNow = known.operation?.subject.id === template.source.image_ref;
  view.log.update(known.operation, { name: template.name, title: isBuilt(template)
    ? isNow ? `revision ${template.revision}` : 'an earlier revision'
    : template.source.image_ref, cancel: act.cancel });
  if (view.tab === 'changes') showChanges();
  readChecked();
  showSteps();
  if (template.cloned_from && known.origin === null) readOrigin(template.cloned_from);
}

// The name of what it was cloned from, which may be gone.
async function readOrigin(id) {
  known.origin = id;
  const found = await call('GET', `/api/templates/${encodeURIComponent(id)}`, { background: true }).catch(() => null);
  if (found) {
    known.origin = found.name;
    showNow();
  }
}

function showSteps() {
  const marked = finding =>
    view.tab === 'dockerfile' || known.template.source.has_dockerfile
      ? element('a.small', {
        href: addressOf(known.reference, 'dockerfile'),
        cmd: commandsOf(known.reference).dockerfile,
        key: `line-${finding.code}-${finding.line}`,
        click: event => {
          event.preventDefault();
          go('dockerfile');
          view.editor.goTo(finding.line);
        },
      }, `line ${finding.line}`)
      : null;
  putIn(find('[data-steps]'), stepsPanel(known, act, { isPlain: Boolean(view.editor?.isDirty() || view.form) }));
  putIn(find('[data-findings]'), findingsPanel(known.template, { lineOf: marked, more: moreOf }));
  showCommand();
}

function moreOf({ code }) {
  if (['secret_env', 'secret_unset'].includes(code) && mayChange(known.template, known.session))
    return element('button.btn.link.small', { key: `more-${code}`, click: async () => {
      go('');
      await edit();
      find('#env-fields').scrollIntoView();
      find('#env-fields input')?.focus();
    } }, 'Edit the variables');
  if (code === 'changed')
    return element('a.small', { href: addressOf(known.reference, 'changes'), 'data-tab-link': 'changes',
      key: 'more-changed', cmd: commandsOf(known.reference).diff() }, 'See the lines');
  return null;
}

function showCommand() {
  if (view.form) return; // it has the command
  const commands = commandsOf(known.reference), { template } = known;
  const rest = restOf(known),
    own = { '': commands.get, dockerfile: template.source.has_dockerfile
      ? commands.dockerfile
      : commands.image, changes: known.difference
        ? commands.diff(known.difference.before, known.difference.after)
        : commands.revisions }[view.tab];
  if (view.tab !== 'dockerfile' || !mayChange(template, known.session)) {
    setCommand(own);
    return;
  }
  if (view.editor?.isDirty())
    setCommand([commands.save(template.revision), commands.build, !template.source.local_only && commands.enable()]);
  else setCommand(rest.length > 0 ? rest : own);
}

function showHead() {
  const { template, reference, image, session } = known, commands = commandsOf(reference);
  document.title = document.title.replace(/^.*?( ·|$)/, `${template.name}$1`);
  const canChange = mayChange(template, session), using = known.revisions.reduce((sum, one) => sum + one.workspaces, 0);
  const item = (title, cmd, key, run, kind = null) =>
    element('li', element('button', { class: kind, cmd, key, 'data-action': true, click: event => {
      if (!isOffline()) run(event.currentTarget);
    } }, title));
  const menu = element('details.menu', { key: 'more-menu' },
    element('summary.btn.icon.quiet', { 'aria-label': `More for ${template.name}`, key: 'more' }, icon('more')),
    element('ul', item('Clone', commands.clone(`my-${template.name}`), 'clone', askForClone),
      canChange && item('Edit', commands.edit(), 'edit-menu', () => {
        go('');
        edit();
      }), canChange && template.status === 'enabled'
      && item('Disable', commands.disable, 'disable', button => disable(button, template, reference)),
      image?.status === 'ready'
        && item('Remove its image', commands.removeImage, 'remove-image',
          async button => (await menuActions()).removeImage(perform, button, template, reference, image.used_by)),
      canChange && element('li', element('hr')),
      canChange && item('Delete', commands.delete, 'delete', button => remove(button, using), 'danger')));
  putIn(find('[data-head]'), crumb(template.name), tagOf(template, image) ?? element('span.tag.ok', 'enabled'),
    element('span.muted.small',
      `revision ${template.revision}, ${template.scope === 'global' ? "everybody's" : 'yours'}`),
    element('div.actions', template.status === 'enabled' && !isBarred(template, image)
      && element('a', { class: `btn${view.form || view.editor?.isDirty() ? '' : ' primary'}`,
        href: `/new?template=${encodeURIComponent(reference)}`, cmd: commands.use, key: 'use' }, icon('plus'),
        'New workspace'),
      pressable([icon('download'), 'Export'], { cmd: commands.export, key: 'export',
        run: async button => (await menuActions()).exportTemplate(perform, button, template) }), menu));
}

async function remove(button, using) {
  if (!await deleteTemplate(button, known.template, known.reference, using)) return;
  view.isLeaving = true;
  location.assign('/templates');
}

// ---- tabs ----

function showTabs() {
  const { template, reference } = known, place = find('[data-tabs]'), commands = commandsOf(reference);
  const { has_dockerfile: hasText } = template.source;
  /** @type {[string, string, any][]} */
  const tabs = [['', 'Overview', commands.get], ['dockerfile', hasText ? 'Dockerfile and build' : 'Image',
    hasText ? commands.dockerfile : commands.image], ['changes', 'What changed', commands.revisions]];
  place.hidden = false;
  setAttribute(place, 'aria-label', template.name);
  putIn(place,
    tabs.map(([name, title, cmd], at) =>
      element('a', { href: addressOf(reference, name), 'data-tab-link': name, 'data-tab': at + 1, key: `tab-${name}`,
        cmd, 'aria-current': view.tab === name ? 'page' : null }, title,
        element('kbd', { 'aria-hidden': true }, String(at + 1)))
    ));
  for (const part of findAll('[data-part]')) part.hidden = part.dataset.part !== view.tab;
  const address = addressOf(reference, view.tab);
  // it has another name now
  if (location.pathname !== address && known.reference !== asked) history.replaceState(null, '', address);
}

// Another tab of the same page: what is typed stays.
function go(tab, { isBack = false } = {}) {
  if (view.tab === tab) return;
  view.tab = tab;
  if (!isBack) history.pushState(null, '', addressOf(known.reference, tab));
  if (tab === 'changes' && !known.difference) readChanges().then(showNow);
  showNow();
}

document.addEventListener('click', event => {
  const link = closestTo(event, '[data-tab-link]');
  if (!link || !known.template || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(link.dataset.tabLink);
});
window.addEventListener('popstate',
  () => go(decodeURIComponent(location.pathname.split('/')[3] ?? ''), { isBack: true }));

// ---- what changed ----

function showChanges() {
  const place = find('[data-part=changes]');
  if (view.changes) putIn(place, ...view.changes.changesPanels(known, { compare, pressable }));
  else putIn(place,
      element('section.panel', { 'aria-busy': true, 'aria-label': 'Loading what changed' },
        element('div.body', skeleton('4', '3'))));
}

// Its own file, and the difference.
async function readChanges() {
  view.changes ??= await import('./changes_tab.js');
  await readDifference();
}

async function compare(chosen) {
  Object.assign(view, { from: known.difference.before, to: known.difference.after }, chosen);
  await readDifference();
  showNow();
}

// ---- editing ----

async function edit() {
  if (view.form) return;
  const { editForm } = await import('./edit_form.js');
  view.form = editForm(known, {
    read: async () => {
      const response = await send('GET', apiPathOf(known.template), {
        background: true,
      });
      return { template: await response.json(), tag: response.headers.get('ETag') };
    },
    closed: endEdit,
    done: record => {
      announce(`${record.name}: saved as revision ${record.revision}`);
      known.template = record;
      known.reference = record.name;
      endEdit();
      refreshSoon();
    },
  });
  find('[data-part=""]').replaceChildren(view.form.node);
  view.form.first();
  showNow();
}

function endEdit() {
  view.form = null;
  showNow();
  find('[data-key=edit]')?.focus();
}

const askForClone = async () => (await import('./making.js')).askForClone(known.template, known.reference);

window.addEventListener('beforeunload', event => {
  if (view.form?.isDirty() && !view.isLeaving) event.preventDefault();
});

// ---- begin ----

const loading = () =>
  element('div.cols.side-r', panelSkeleton('the template', 12),
    element('div.stack-4', panelSkeleton('its steps', 5), panelSkeleton('what was found', 4)));

const crumb = name =>
  element('div.crumb', element('a', { href: '/templates', cmd: ['template list'] }, 'Templates'),
    element('span.sep', { 'aria-hidden': true }, '/'), element('h1.name.ref', name));

// Head and tabs in the room that they will take.
function skeletonOfHead() {
  putIn(find('[data-head]'), crumb(asked), element('span.tag.skel.words', { 'aria-hidden': true }, 'needs a build'),
    element('span.small.skel.words', { 'aria-hidden': true }, 'revision 1, yours'),
    element('div.actions', element('button.btn', { 'aria-disabled': true }, icon('download'), 'Export'),
      element('span.btn.icon.quiet', { 'aria-hidden': true }, icon('more'))));
  const place = find('[data-tabs]');
  setAttribute(place, 'aria-label', asked);
  putIn(place,
    ['Overview', 'Dockerfile and build', 'What changed'].map((title, at) =>
      element('a', { href: addressOf(asked, ['', 'dockerfile', 'changes'][at]),
        'data-tab-link': ['', 'dockerfile', 'changes'][at] }, title,
        element('kbd', { 'aria-hidden': true }, String(at + 1)))
    ));
}

function unready() {
  for (const skeleton of findAll('.skel', find('[data-head]'))) skeleton.remove();
}

function gone({ status }) {
  if (status !== 404) return null;
  putIn(find('[data-head]'), crumb(asked));
  find('[data-tabs]').hidden = true;
  return empty('There is no such template', { 'data-gone': true },
    element('p', element('span.mono.ref', asked),
      ' is not there, or not for you. It may have been deleted, or have another name now.'),
    element('a.btn', { href: '/templates', cmd: ['template list'] }, 'Templates'));
}

function wants({ type, subject }) {
  if (type.startsWith('template.')) return subject.id === known.template.id;
  if (type === 'operation.progress' || type.startsWith('image.')) return true;
  return type.startsWith('operation.') || type === 'registries.changed' || type.startsWith('workspace.');
}

skeletonOfHead();
known.session = await startPage({ read, show, loading, gone, unready, failed: 'The template could not be read.',
  wants });
showNow();
