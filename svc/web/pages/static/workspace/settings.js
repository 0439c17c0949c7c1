// The settings of a workspace: its name at any time, all else while it is stopped.
import { call, session } from '../frame/api.js';
import { element, find, notice, setAttribute } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { setCommand, toast } from '../frame/foot.js';
import { announce, answer, answerRefusal } from '../frame/notices.js';
import { duration } from '../frame/format.js';
import { WORKSPACE_RENAME, WORKSPACE_UPGRADE } from '../generated/actions.js';
import { field, fieldOf, pointAtErrors, showErrors, plainInput } from '../parts/form.js';
import { change, actionButton, isDoing, openUpgrade } from './actions.js';
import { refresh } from '../screen/page.js';
import { startWorkspace, versionOf, workspacePath } from './head.js';
import { fieldsOf, fillForm, readForm } from './settings_form.js';
import { hasGpus, showGpuFields } from '../parts/gpu_fields.js';
import { FIELD_LABELS, patchOf, textsOf, describe } from './sizes.js';
import { put } from '../parts/still.js';
import { editCommand } from '../parts/workspace_actions.js';

// `base` is what the form was filled from, `version` that record's; `theirs` what others have changed meanwhile.
const edited = { record: /** @type {Api.Workspace} */ (null), base: null, version: null, theirs: null,
  isSaving: false };

// Whether the host has GPUs is asked beside the record; the first look waits for it, and not for long.
const HOST_MS = 1500;
const host = { isWithGpus: null, record: null };
const soon = new Promise(resolve => {
  setTimeout(resolve, HOST_MS, true);
});
const asked = session.secret
  ? call('GET', '/api/workspaces/capacity', { background: true }).then(hasGpus, () => true)
  : true;

// ---- the parts, once ----

function build() {
  const name = plainInput('mono', { maxlength: '63', required: true });
  const renaming = element('form.section', { novalidate: true, 'data-renaming': true,
    on: { input: follow, submit: renameIt } },
    element('div.form-grid',
      field('name', 'Name', name, { wide: 'w2',
        help: 'a-z, 0-9 and -. It changes at any time; what runs in it runs on.' })),
    element('div.row', element('button.btn', { type: 'submit', key: 'rename' }, 'Rename')));
  const save = element('button.btn.primary', { type: 'submit', key: 'save' }, 'Save');
  const discard = element('button.btn.quiet', { key: 'discard', click: takeTheirs }, 'Discard what I typed');
  const form = element('form.section', { novalidate: true, 'data-editing': true,
    on: { input: follow, change: follow, submit: saveAll } },
    fieldsOf([save, discard, element('span.muted.small', { 'data-unsaved': true })]));
  find('#screen').append(element('div.stack-4', { 'data-reasons': true }),
    element('div.panel',
      element('div.body.stack-4', renaming, form, element('div.section', { 'data-rules': true }),
        element('div.section', { 'data-ending': true }))));
}

const renameForm = () => find('[data-renaming]');
const editForm = () => find('[data-editing]');
const nameField = () => find('[name=name]', renameForm());

// ---- showing ----

/** @param {Api.Workspace} record */
function show(record) {
  host.record = record;
  if (host.isWithGpus === null) return;
  const isFirst = edited.record === null;
  if (isFirst) build();
  const before = edited.record;
  edited.record = record;
  if (isFirst || nameField().value === before.name) nameField().value = record.name;
  takeOver(record, isFirst);
  showState();
  follow();
}

// What others changed comes into the fields that are as they were; typed ones stay, and are told.
/** @param {Api.Workspace} record */
function takeOver(record, isFirst) {
  const texts = textsOf(record);
  if (isFirst) fillForm(editForm(), texts, Object.keys(texts));
  const base = edited.base ?? texts, typed = readForm(editForm());
  const names = Object.keys(texts).filter(name => texts[name] !== base[name]);
  const untouched = names.filter(name => typed[name] === base[name] || typed[name] === texts[name]);
  const touched = names.filter(name => !untouched.includes(name));
  fillForm(editForm(), texts, untouched.filter(name => typed[name] !== texts[name]));
  if (touched.length > 0) {
    edited.theirs = { texts, names: touched, version: versionOf(record) ?? edited.theirs?.version };
    for (const name of untouched) edited.base[name] = texts[name];
    return;
  }
  edited.base = texts;
  edited.theirs = null;
  edited.version = versionOf(record) ?? edited.version;
}

function showState() {
  const { record, theirs } = edited;
  const isOpen = record.allowed_actions.includes('edit');
  find('[data-editable]').disabled = !isOpen;
  showGpuFields(name => fieldOf(editForm(), `resources.${name}`).closest('.field'), host.isWithGpus,
    record.resources.gpu_count);
  put(find('[data-reasons]'), [record.status, record.allowed_actions, record.name, isOpen, theirs, isOffline(),
    isDoing()], () => [!isOpen && whyClosed(record), theirs && conflict()].filter(Boolean));
  put(find('[data-rules]'), [record.idle, record.template, record.command], () => rules(record));
  put(find('[data-ending]'), [record.name, record.allowed_actions, isOffline(), isDoing()], () => ending(record));
  const primary = find('[data-key=rename]');
  primary.className = isOpen ? 'btn' : 'btn primary';
  find('[data-key=save]').className = isOpen ? 'btn primary' : 'btn';
}

function info(title, text, ...buttons) {
  return notice('', 'info', element('p', element('b', title), ' ', text),
    buttons.length > 0 && element('div.row', ...buttons));
}

function whyClosed({ status, allowed_actions: allowed }) {
  if (status === 'running' && allowed.includes('stop'))
    return info('It runs.',
      'Its name changes at any time; size, variables and the rest while it is stopped. What was installed in '
        + 'it stays either way.', actionButton('stop', { label: 'Stop and edit', kind: 'sm', key: 'stop-and-edit' }));
  return info('It is on its way.', 'Its name changes at any time; all else once it is stopped.');
}

// Somebody else changed what is being typed here.
function conflict() {
  const { base, theirs: { texts, names } } = edited;
  const mine = readForm(editForm());
  const row = name =>
    element('li',
      `${FIELD_LABELS[name]}: it was ${describe(name, base)}, now it is ${describe(name, texts)}; you typed ${
        describe(name, mine)
      }`);
  return notice('warn', 'warning', { role: 'alert', tabindex: '-1', 'data-conflict': true },
    element('p', element('b', 'It has changed meanwhile'),
      ', in another tab, on the host, or by a token. What you typed is still here.'),
    element('ul.small.ref', names.map(row)),
    element('div.row', element('button.btn.sm', { key: 'mine', click: keepMine }, 'Keep what I typed'),
      element('button.btn.sm.quiet', { key: 'theirs', click: takeTheirs }, 'Take what is there now')));
}

// The next save is on top of what is there now.
function keepMine() {
  edited.base = edited.theirs.texts;
  edited.version = edited.theirs.version;
  edited.theirs = null;
  answer(null);
  showState();
  follow();
  find('[data-key=save]').focus();
}

function takeTheirs() {
  const texts = textsOf(edited.record);
  Object.assign(edited, { base: texts, theirs: null,
    version: versionOf(edited.record) ?? edited.theirs?.version ?? edited.version });
  fillForm(editForm(), texts, Object.keys(texts));
  nameField().value = edited.record.name;
  for (const form of [renameForm(), editForm()]) showErrors(form, []);
  answer(null);
  showState();
  follow();
}

function rules({ idle, template, name, command, newer_image: isNewerImage }) {
  const newer = template.newer_revision ? `revision ${template.newer_revision}` : isNewerImage && 'the newer image';
  const text = idle.action === 'none' || idle.after_minutes === null
    ? 'Nothing is done when it is idle.'
    : idle.action === 'stop'
    ? `It is stopped when it was idle for ${duration(idle.after_minutes * 60)}.`
    : `A notice is written when it was idle for ${duration(idle.after_minutes * 60)}; it is never stopped.`;
  return [element('h2', 'By its template'),
    element('p.soft', text, ` Mounts, apps${command ? '' : ', command'} and image are those of `,
      element('a', { href: `/templates/${encodeURIComponent(template.name)}`, cmd: ['template get', template.name] },
        template.name), `, revision ${template.revision}.`), ...(newer
      ? [
        element('div.row',
          element('button.btn', { key: 'upgrade', cmd: [WORKSPACE_UPGRADE, name, '--dry-run'], click: openUpgrade },
            `What ${newer} changes`)),
      ]
      : [])];
}

function ending({ allowed_actions: allowed, status }) {
  const isOff = !allowed.includes('delete');
  const button = actionButton('delete', { label: `Delete ${edited.record.name}`, kind: 'danger ref' });
  if (isOff) {
    for (const [key, value] of [['aria-disabled', 'true'], ['aria-describedby', 'delete-why']])
      setAttribute(button, key, value);
  }
  return [element('h2', 'Delete'),
    element('p.soft',
      `Deletes the container and what was installed in it. Files under /work stay.${
        status === 'running' ? ' It is stopped first.' : ''
      }`),
    element('div.row', button,
      isOff && element('span.muted.small', { id: 'delete-why' }, 'It is on its way: wait for its end.'))];
}

// ---- the command, as it is typed ----

// Another command, its first network, or its last one, needs another container: that is said, and ticked, before.
function newPatch() {
  const found = patchOf(readForm(editForm()), edited.base), { patch } = found;
  const isOther = 'command' in patch
    || ('network' in patch && (patch.network === null) !== (edited.base.network === ''));
  const isReplacing = isOther && edited.record.started_at !== null;
  find('[data-replace]').hidden = !isReplacing;
  if (isReplacing && find('[name=replace_container]').checked) patch.replace_container = true;
  return found;
}

function follow() {
  const { patch, wrong } = newPatch();
  const count = Object.keys(patch).length - (patch.replace_container ? 1 : 0)
    + Object.keys(patch.resources ?? {}).length - (patch.resources ? 1 : 0) + wrong.length;
  find('[data-unsaved]').textContent = count === 0 ? 'Nothing is changed' : `${count} not saved`;
  for (const key of ['save', 'discard'])
    setAttribute(find(`[data-key=${key}]`), 'aria-disabled',
      count === 0 && !(key === 'discard' && nameField().value !== edited.record.name));
  setAttribute(find('[data-key=rename]'), 'aria-disabled', nameField().value === edited.record.name);
  setAttribute(find('[data-key=rename]'), 'data-cmd', renameCommand());
  setAttribute(find('[data-key=save]'), 'data-cmd', patchCommand(patch));
  setCommand(footCommand(edited.record));
  document.activeElement?.dispatchEvent(new FocusEvent('focusin', { bubbles: true })); // its command is another one now
}

const renameCommand = () => [WORKSPACE_RENAME, edited.record.name, nameField().value];

const patchCommand = patch => editCommand(edited.record.name, Object.keys(patch).length > 0 ? patch : null);

/** @param {Api.Workspace} record */
function footCommand(record) {
  if (!edited.base || !editForm()) return editCommand(record.name);
  const { patch } = newPatch();
  const isRenamed = nameField().value !== record.name;
  return [(Object.keys(patch).length > 0 || !isRenamed) && patchCommand(patch), isRenamed && renameCommand()];
}

// ---- doing ----

async function renameIt(event) {
  event.preventDefault();
  if (find('[data-key=rename]').getAttribute('aria-disabled') || isOffline()) return;
  showErrors(renameForm(), []);
  const name = nameField().value;
  // A name is renamed whatever else has changed: it alone is what is typed here.
  await sendIt('rename', renameForm(), () => call('POST', `${workspacePath(edited.record)}/rename`, { body: { name } }),
    `${edited.record.name} was not renamed.`, 'Renamed');
}

async function saveAll(event) {
  event.preventDefault();
  if (find('[data-key=save]').getAttribute('aria-disabled') || isOffline()) return;
  showErrors(editForm(), []);
  const { patch, wrong } = newPatch();
  if (wrong.length > 0) {
    pointAtErrors(editForm(), wrong);
    return;
  }
  await sendIt('save', editForm(),
    () => call('PATCH', workspacePath(edited.record), { body: patch, ifMatch: edited.version }),
    `${edited.record.name} was not changed.`, 'Saved');
}

async function sendIt(key, form, request, failed, done) {
  const button = find(`[data-key=${key}]`);
  if (edited.isSaving) return;
  edited.isSaving = true;
  setAttribute(button, 'aria-busy', true);
  answer(null);
  const sent = readForm(editForm());
  try {
    const record = await request();
    if (key === 'save') takeSaved(textsOf(record), sent);
    if (key === 'rename') nameField().value = edited.record.name; // it follows the record, which is read now
    toast(done);
    announce(done);
    await refresh();
  } catch (error) {
    await refuse(error, form, failed);
  } finally {
    edited.isSaving = false;
    setAttribute(find(`[data-key=${key}]`), 'aria-busy', null);
  }
}

// What was typed while it was being saved stays, for the next save.
function takeSaved(texts, sent) {
  const typed = readForm(editForm());
  edited.base = texts;
  fillForm(editForm(), texts, Object.keys(texts).filter(name => typed[name] === sent[name]));
}

async function refuse(error, form, failed) {
  if (error.status === 401) return;
  if (error.status === 412) {
    await refresh();
    if (edited.theirs) {
      find('[data-conflict]').focus();
      return;
    }
    answerRefusal(error, failed);
    return;
  }
  if (pointAtErrors(form, error.fields)) return;
  await change(() => Promise.reject(error), { failed });
}

window.addEventListener('beforeunload', event => {
  if (edited.base && Object.keys(newPatch().patch).length > 0) event.preventDefault();
});

Promise.race([asked, soon]).then(isWithGpus => {
  host.isWithGpus = isWithGpus;
  if (host.record) show(host.record);
});
await startWorkspace({ tab: 'settings', show, command: footCommand });
