// The Dockerfile: a textarea with line numbers outside it, saved only over the text that it was made of.
// Loaded by the page of a template that has one; what it shares with that page is given to it.
import { all, call, send } from '../frame/api.js';
import { element, find, notice } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { refused } from '../frame/notices.js';
import { counted } from '../frame/format.js';
import { bytes, commandsOf, apiPathOf } from './about.js';
import { createFiles } from './context_files.js';

/** @param {Api.Template} template */
const pathOfText = template => `${apiPathOf(template)}/dockerfile`;

// The stored text, its version, whether it is read-only, and the files that it is built with.
/** @param {Api.Template} template */
export async function readDockerfile(template, { background }) {
  const files = template.source.context_files
    ? all(`${apiPathOf(template)}/context`, { background })
    : [];
  const [response, found] = await Promise.all([send('GET', pathOfText(template), { background }), files]);
  const { dockerfile: text, read_only: isReadOnly } = await response.json();
  return { text, isReadOnly, tag: response.headers.get('ETag'), files: found };
}

// How many lines differ, between the equal ends.
export function changedLines(before, after) {
  const old = before.split('\n'), fresh = after.split('\n'), least = Math.min(old.length, fresh.length);
  let head = 0, tail = 0;
  while (head < least && old[head] === fresh[head]) head++;
  while (tail < least - head && old[old.length - 1 - tail] === fresh[fresh.length - 1 - tail]) tail++;
  return Math.max(old.length, fresh.length) - head - tail;
}

// `build(button)` and `clone()` are what its buttons do besides; `changed()` is told of every key; the build's files
// are shown in `filesPlace`; `page` has what the page's own modules export.
export function createEditor(place, { build, clone, changed, filesPlace, page }) {
  const { announce, answer, nextStep, pressable, put } = page;
  const nums = element('div.nums', { 'aria-hidden': true });
  const text = element('textarea', { 'aria-label': 'Dockerfile', spellcheck: 'false', autocomplete: 'off',
    autocapitalize: 'off', wrap: 'off', 'aria-describedby': 'dockerfile-note', key: 'dockerfile' });
  const head = element('header'), other = element('div', { hidden: true, 'data-conflict': true }),
    note = element('span.muted.small', { id: 'dockerfile-note' });
  place.append(
    element('section.panel', { 'aria-labelledby': 'dockerfile-h' }, head, other, element('div.editor.code', nums, text),
      element('footer', note))
  );
  const files = createFiles(filesPlace, page);
  // base: the text as it was read or saved; tag: its version; theirs: {text, title} beside it, isPending until
  // the person has said what becomes of the two.
  const state = { base: null, tag: null, template: null, reference: '', isReadOnly: true, hasReturns: false,
    isSaving: false, next: '', theirs: null, isPending: false };

  const isDirty = () => state.base !== null && text.value !== state.base;

  function set(value) {
    text.value = value;
    number();
  }

  function number() {
    const count = text.value.split('\n').length;
    text.rows = Math.max(count, 6);
    const numbers = Array.from({ length: count }, (_, at) => at + 1).join('\n');
    if (nums.textContent !== numbers) nums.textContent = numbers;
  }

  // What was read: it takes the place of a text that nobody has changed; else both stay.
  function update({ template, dockerfile, reference, next }) {
    Object.assign(state, { template, reference, next, isReadOnly: dockerfile.isReadOnly });
    text.readOnly = dockerfile.isReadOnly;
    if (dockerfile.tag !== state.tag && !state.isSaving) {
      if (isDirty()) beside(dockerfile);
      else take(dockerfile);
    }
    show();
    files.update({ template, reference, files: dockerfile.files, isReadOnly: dockerfile.isReadOnly });
  }

  function take({ text: stored, tag }) {
    state.hasReturns = stored.includes('\r\n');
    if (text.value !== stored || state.base === null) set(stored);
    state.base = text.value; // as the browser has it: with its own line ends
    state.tag = tag;
  }

  // Somebody has saved another text: it is shown beside this one, and nothing is saved until that was seen.
  function beside({ text: stored, tag }) {
    state.base = stored.replaceAll('\r\n', '\n');
    state.tag = tag;
    state.isPending = isDirty();
    state.theirs = isDirty() ? { text: state.base, title: 'Saved elsewhere meanwhile' } : null;
  }

  function finish() {
    state.isPending = false;
  }

  function exchange() {
    finish();
    const mine = text.value;
    set(state.theirs.text);
    state.theirs = { text: mine, title: 'What you had typed' };
    show();
    changed();
    text.focus();
  }

  async function save() {
    if (isOffline() || state.isSaving || !isDirty() || state.isReadOnly) return false;
    if (state.isPending) {
      find('button', other).focus();
      return false;
    }
    const sent = text.value;
    let isSaved = false;
    state.isSaving = true;
    answer(null);
    show();
    try {
      await call('PUT', pathOfText(state.template), {
        body: { dockerfile: state.hasReturns ? sent.replaceAll('\n', '\r\n') : sent },
        ifMatch: state.tag,
      });
      isSaved = true;
      state.base = sent;
      state.theirs = null;
      state.tag = (await readDockerfile(state.template, { background: true })).tag;
      announce('Saved');
      return true;
    } catch (error) {
      if (!('retryable' in error)) throw error;
      if (error.status === 412) beside(await readDockerfile(state.template, { background: true }));
      else if (error.status !== 401)
        answer(
          refused(error, {
            what: isSaved ? 'The Dockerfile was saved, and could not be read again.' : 'The Dockerfile was not saved.',
            act: nextStep,
            dismiss: () => answer(null),
          })
        );
      return isSaved;
    } finally {
      state.isSaving = false;
      show();
      changed();
    }
  }

  async function saveAndBuild(button) {
    if (isDirty() && !await save()) return;
    await build(button);
  }

  function undo() {
    state.theirs = isDirty() ? { text: text.value, title: 'What you had typed' } : null;
    set(state.base);
    show();
    changed();
    text.focus();
  }

  // Show one line, chosen.
  function goTo(line) {
    const rows = text.value.split('\n').slice(0, line);
    const end = rows.join('\n').length;
    text.focus();
    text.setSelectionRange(end - rows.at(-1).length, end);
    const height = text.clientHeight / Math.max(text.value.split('\n').length, 6);
    window.scrollTo({ top: text.getBoundingClientRect().top + window.scrollY + height * (line - 6) });
  }

  function show() {
    if (!state.template) return;
    put(head, headOf());
    other.hidden = !state.theirs;
    put(other, state.theirs && theirs());
    const { template } = state;
    const count = template.source.context_files;
    const context = count
      ? `Built with ${counted(count, 'file')}, ${bytes(template.source.context_bytes)}.`
      : 'Built without other files.';
    note.textContent = state.isReadOnly
      ? `${context} Everybody's Dockerfile is read-only: a clone has its own.`
      : `${
        template.status === 'enabled'
          ? `Saving makes revision ${template.revision + 1} and disables the template until that is built.`
          : `Saving makes revision ${template.revision + 1}.`
      } ${context}`;
  }

  function headOf() {
    const commands = commandsOf(state.reference), { revision } = state.template,
      lines = isDirty() ? changedLines(state.base, text.value) : 0;
    const title = element('h2', { id: 'dockerfile-h' }, 'Dockerfile');
    if (state.isReadOnly)
      return [title, element('span.tag', 'read-only'),
        element('div.actions',
          pressable('Clone it to change it', { kind: 'sm', cmd: commands.clone(`my-${state.template.name}`),
            key: 'clone-text', run: clone }))];
    const saving = commands.save(revision), isFirst = state.next === 'build';
    return [title,
      element('span.tag.line-tag', { role: 'status' },
        isDirty() ? `${counted(lines, 'line')} changed, not saved` : 'saved'), element('div.actions', isDirty()
        && element('button.btn.sm.quiet', { key: 'undo', cmd: commands.dockerfile, click: undo }, 'Undo all'), isDirty()
        && pressable(['Save', element('kbd', 'Ctrl S')], { kind: 'sm', cmd: saving, key: 'save', run: save,
          why: state.isPending ? 'Another text was saved: see below.' : '' }), isDirty()
        ? !state.isPending
          && pressable('Save and build', { kind: 'sm primary', cmd: [saving, commands.build], key: 'save-build',
            run: saveAndBuild })
        : !isFirst && pressable('Build again', { kind: 'sm', cmd: commands.build, key: 'build-again', run: build }))];
  }

  function theirs() {
    const isMine = state.theirs.title === 'What you had typed';
    return notice('warn.inset', 'warning', { role: isMine ? null : 'alert' },
      element('p', element('b', state.theirs.title, '. '), isMine
        ? 'It is kept here until you leave the page.'
        : 'Your text is below, and not saved. If you save it over this one, this one stays a revision.'),
      element('pre.code.conflict', { tabindex: '0', role: 'region', 'aria-label': state.theirs.title },
        state.theirs.text), element('div.row', state.isPending
        && pressable('Save mine over it', { kind: 'sm', cmd: commandsOf(state.reference).save(), key: 'save-over',
          run: () => {
            finish();
            save();
          } }),
        element('button.btn.sm', { key: 'exchange', click: exchange },
          isMine ? 'Put it back into the editor' : 'Edit this one, and keep mine here'),
        element('button.btn.sm.quiet', { key: 'close-conflict', click: () => {
          finish();
          state.theirs = null;
          show();
          text.focus();
        } }, 'Close')));
  }

  text.addEventListener('input', () => {
    number();
    show();
    changed();
  });
  document.addEventListener('keydown', event => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 's' && !find('dialog[open]') && !place.hidden) {
      event.preventDefault();
      save();
    }
  });
  window.addEventListener('beforeunload', event => {
    if (isDirty()) event.preventDefault();
  });
  return { update, isDirty, goTo, save, show };
}
