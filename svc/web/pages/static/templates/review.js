// The review of everybody's templates: what changed beside what was found, and the steps until one is enabled.
import { all, call } from '../frame/api.js';
import { command, element, find, icon, panel, empty } from '../frame/dom.js';
import { panelSkeleton } from '../frame/frame.js';
import { setCommand } from '../frame/foot.js';
import { time } from '../frame/format.js';
import { ADMIN_EDIT_USER, ADMIN_TEMPLATE_IMPORT } from '../generated/actions.js';
import { addressOf, commandsOf, imageState, tagOf, newestOperation } from './about.js';
import { createLog } from './build.js';
import { countsOf, diffTable, wholeAsDiff } from './changes.js';
import { cancel, deleteTemplate, disable, enable, fetchImage } from './actions.js';
import { refreshSoon, showNow, startPage } from '../screen/page.js';
import { fieldRows, sourceRows } from './overview.js';
import { pressable, putIn } from './page.js';
import { findingsPanel, restOf, stepsPanel } from './steps.js';
import { tableHead } from '../parts/tables.js';

const AT_ONCE = 100; // rows of the table; the rest on demand
const known = { waiting: [], templates: /** @type {Api.Template[]} */ ([]), images: new Map(), session: null,
  chosen: null };
const view = { id: decodeURIComponent(location.pathname.split('/')[3] ?? ''), most: AT_ONCE, log: null };

async function read(options) {
  const [waiting, templates, images] = await Promise.all([all('/api/admin/templates', options),
    all('/api/templates?sort=name', options), all('/api/images', options)]);
  known.waiting = waiting;
  known.templates = templates.filter(template => template.scope === 'global');
  known.images = new Map(images.filter(image => image.template).map(image => [image.template.id, image]));
  if (!waiting.some(template => template.id === view.id)) view.id = waiting[0]?.id ?? null;
  if (view.id) await readChosen(options);
  else known.chosen = null;
}

// The whole record of the one under review, and what differs from the revision that was enabled last.
async function readChosen(options) {
  const path = `/api/templates/${encodeURIComponent(view.id)}`;
  const template = await call('GET', path, options);
  const [operation, difference] = await Promise.all([
    newestOperation(template, options),
    differenceOf(template, path, options),
  ]);
  if (template.id !== view.id) return;
  known.chosen = { template, image: known.images.get(template.id) ?? null, operation, difference, checked: null,
    reference: template.id, session: known.session };
}

/** @param {Api.Template} template */
async function differenceOf(template, path, options) {
  if (template.reviewed_revision) {
    try {
      return await call('GET', `${path}/diff?from=${template.reviewed_revision}&to=${template.revision}`, options);
    } catch (error) {
      if (error.status !== 404) throw error; // that revision is no longer kept: all of it is new
    }
  }
  if (!template.source.has_dockerfile) return { fields: [], dockerfile: null, context: null, isWhole: true };
  const { dockerfile } = await call('GET', `${path}/dockerfile`, options);
  return { ...wholeAsDiff(dockerfile), isWhole: true };
}

// ---- showing ----

const act = {
  build: async button => {
    if (await fetchImage(button, known.chosen.template, 'build')) refreshSoon();
  },
  pull: async button => {
    if (await fetchImage(button, known.chosen.template, 'pull')) refreshSoon();
  },
  enable: async button => {
    if (await enable(button, known.chosen.template)) refreshSoon();
  },
  cancel: button => cancel(button, known.chosen.operation),
};

function show() {
  const screen = find('#screen');
  if (!find('[data-review]', screen)) {
    screen.replaceChildren(element('div', { 'data-waiting': true }), element('div.stack-4', { 'data-review': true }),
      element('div', { 'data-global': true }));
    view.log = null;
  }
  find('.lede').textContent = known.waiting.length === 0 ? 'Nothing to review' : `${known.waiting.length} to review`;
  putIn(find('[data-waiting]'), waitingList());
  if (known.chosen) showChosen();
  else putIn(find('[data-review]'), emptyReview());
  putIn(find('[data-global]'), globalTable());
  const { chosen } = known;
  setCommand(
    chosen
      ? [commandsOf(chosen.reference).get, ...restOf(chosen)]
      : ['template list', '--review']
  );
}

function waitingList() {
  if (known.waiting.length < 2) return '';
  const one = template =>
    element('button', { 'aria-pressed': String(template.id === view.id), key: `wait-${template.id}`,
      cmd: commandsOf(template.id).get, click: () => choose(template.id) }, element('span.mono', template.name),
      ` revision ${template.revision}${
        template.findings.some(finding => finding.code === 'bundle_digest')
          ? ', imported'
          : ''
      }`);
  return element('div.seg', { role: 'group', 'aria-label': 'Templates that wait' },
    known.waiting.slice(0, 40).map(one));
}

async function choose(id) {
  view.id = id;
  history.replaceState(null, '', `/admin/templates/${encodeURIComponent(id)}`);
  known.chosen = null;
  putIn(find('[data-review]'), loading());
  await readChosen({ background: true }).catch(() => refreshSoon());
  showNow();
}

function showChosen() {
  const place = find('[data-review]'), { chosen } = known, { template, difference } = chosen;
  if (place.dataset.of !== template.id || !find('[data-diff]', place)) {
    place.dataset.of = template.id;
    place.replaceChildren(
      element('div.cols.side-r.review',
        element('div.stack-4', element('div', { 'data-diff': true }), element('div', { 'data-log-place': true })),
        element('div.stack-4', element('div', { 'data-findings': true }), element('div', { 'data-steps': true })))
    );
    view.log = createLog(find('[data-log-place]', place));
  }
  const marks = new Set(template.findings.filter(finding => finding.line).map(finding => finding.line));
  const lineOf = finding => (finding.file
    ? element('a.small', { href: `#line-${finding.line}` }, `line ${finding.line}`)
    : null);
  putIn(find('[data-diff]', place), differencePanel(template, difference, marks));
  putIn(find('[data-findings]', place), findingsPanel(template, { lineOf }));
  putIn(find('[data-steps]', place),
    stepsPanel(chosen, act, { title: `Enable revision ${template.revision}`,
      buttons: pressable('Delete', { kind: 'sm danger', cmd: commandsOf(template.id).delete, key: 'delete',
        label: `Delete ${template.name}`, run: button => deleteTemplate(button, template, template.id, null) }) }));
  view.log.update(chosen.operation, { name: template.name, title: `revision ${template.revision}`,
    cancel: act.cancel });
}

/** @param {Api.Template} template */
function differencePanel(template, difference, marks) {
  const title = [element('span.name.ref', template.name), difference.isWhole
    ? `, revision ${template.revision}: no revision of it was enabled before`
    : `, revision ${template.revision}: what changed since revision ${template.reviewed_revision}, the last enabled`];
  const files = template.source.context_files;
  const facts = element('dl.facts', { 'data-all-fields': true },
    template.description && [element('dt', 'For'), element('dd.ref', template.description)], ...sourceRows(template),
    ...fieldRows(template));
  return element('section.panel', { 'aria-labelledby': 'diff-h' },
    element('header', element('h2.ref', { id: 'diff-h' }, title), element('div.actions', difference.dockerfile
      && element('span.muted.small.num', `Dockerfile ${countsOf(difference.dockerfile)}`),
      element('a.small', { href: addressOf(template.id), cmd: commandsOf(template.id).get }, 'The whole template'))),
    difference.isWhole && element('div.body', facts), difference.dockerfile || !difference.isWhole
    ? diffTable(difference, { marks, label: `Difference of ${template.name}` })
    : '', !difference.isWhole
    && element('div.body',
      element('details.more', { key: 'all-fields' }, element('summary.small', `All of revision ${template.revision}`),
        facts)), element('footer', element('span.muted.small', files
        ? `The context has ${files === 1 ? '1 file' : `${files} files`}${
          difference.isWhole ? '' : difference.context ? '; some changed' : '; none changed'
        }.`
        : 'It is built without other files.')));
}

const emptyReview = () =>
  empty('Nothing waits for a review',
    element('p',
      "A template of everybody's waits here when its present revision was never enabled: one that was imported "
        + 'or made, or whose image or Dockerfile changed.'), command(['template list', '--review']));

// ---- everybody's templates ----

function globalTable() {
  if (known.templates.length === 0) return '';
  const cell = (label, ...content) => element('td', { 'data-l': label }, ...content);
  const rows = known.templates.slice(0, view.most).map(template =>
    element('tr', { tabindex: '-1', 'data-id': template.id },
      cell(null,
        element('div.stack',
          element('a.name.ref', { href: addressOf(template.id), cmd: commandsOf(template.id).get,
            key: `name-${template.id}` }, template.name),
          element('span.muted.small', `revision ${template.revision}`))),
      cell('State', tagOf(template, known.images.get(template.id)) ?? element('span.tag.ok', 'enabled')),
      cell('From',
        element('span.mono.ref.tiny', template.source.type === 'registry' ? template.source.image_ref : 'Dockerfile')),
      cell('In your store', imageState(known.images.get(template.id))),
      cell('Changed', time(template.updated_at, 'ago')), element('td.c-act', element('div.row', rowButton(template))))
  );
  const rest = known.templates.length - view.most;
  return panel('global-h', "Everybody's templates", element('span.count', String(known.templates.length)),
    element('table.table.fold', { 'aria-labelledby': 'global-h' },
      tableHead(['Name', 'State', 'From', 'In your store', 'Changed', '']), element('tbody', rows)), rest > 0
    && element('footer', element('button.btn.sm', { key: 'rest', click: () => {
      view.most += AT_ONCE;
      showNow();
    } }, `Show more of ${known.templates.length}`)));
}

/** @param {Api.Template} template */
function rowButton(template) {
  const { id, name } = template;
  if (template.status === 'enabled')
    return pressable('Disable', { kind: 'sm quiet', cmd: commandsOf(id).disable, key: `disable-${id}`,
      label: `Disable ${name}`, run: button => disable(button, template, id) });
  if (known.waiting.some(other => other.id === id))
    return element('button.btn.sm.quiet', { cmd: commandsOf(id).get, key: `review-${id}`,
      'aria-label': `Review ${name}`, click: () => choose(id) }, 'Review');
  return pressable('Enable', { kind: 'sm', cmd: commandsOf(id).enable(template.revision), key: `enable-${id}`,
    label: `Enable ${name}`, run: button => enable(button, template) });
}

// ---- begin ----

const loading = () => element('div.cols.side-r', panelSkeleton('the review', 12), panelSkeleton('what was found', 9));

function noPermission({ user }) {
  return empty('For administrators', { 'data-no-permission': true },
    element('p', 'The account ', element('span.mono', user.name),
      ' is none. Administrators are made on the host, by root:'), command([ADMIN_EDIT_USER, user.name, '--superuser']),
    element('a.btn', { href: '/templates', cmd: ['template list'] }, 'Templates'));
}

startPage({
  read,
  show,
  loading,
  failed: 'The review could not be read.',
  may: session => {
    known.session = session;
    if (session.user.superuser) showActions();
    else find('#screen').replaceChildren(noPermission(session));
    return session.user.superuser;
  },
  wants: ({ type }) => ['template.', 'image.', 'operation.', 'registries.'].some(start => type.startsWith(start)),
});

function showActions() {
  find('[data-actions]').replaceChildren(
    pressable([icon('upload'), 'Import for everybody'], { cmd: [ADMIN_TEMPLATE_IMPORT, null, '--global'], key: 'import',
      run: async () =>
        (await import('./making.js')).askForBundle({ isGlobal: true, done: created => {
          view.id = created.id;
          refreshSoon();
        } }) })
  );
}
