// The files that a Dockerfile is built with: seen, added, replaced, removed.
import { call } from '../frame/api.js';
import { element, find, panel } from '../frame/dom.js';
import { ask } from '../frame/asking.js';
import { bytes, apiPathOf } from './about.js';
import { tableHead } from '../parts/tables.js';
import { plainInput } from '../parts/form.js';

const VISIBLE_MAX = 200;

// `page` has what the page's own module exports.
export function createFiles(place, { action, pressable, put }) {
  const state = { template: null, reference: '', files: [], isReadOnly: true, chosen: null };
  const path = plainInput('mono', { 'aria-label': 'Its path among the files', maxlength: '255', key: 'context-path' });
  const chooser = element('input.vh', { type: 'file', 'aria-label': 'File', key: 'context-file', tabindex: '-1' });
  const commandFor = (...options) => ['template context', state.reference, ...options];
  const pathOf = name => `${apiPathOf(state.template)}/context/file?path=${encodeURIComponent(name)}`;
  const body = element('div'),
    section = panel('context-h', 'Files that it is built with', [element('span.count'), element('div.actions')], {
      'data-context': true,
    }, chooser, body);
  place.append(section);

  chooser.addEventListener('change', () => {
    [state.chosen] = chooser.files;
    path.value = state.chosen?.name ?? '';
    show();
    if (state.chosen) path.focus();
  });
  path.addEventListener('input', () => show());

  async function send(button) {
    const { chosen } = state;
    const came = await action(button, { what: `${path.value} was not saved.`, done: `${path.value}: saved` },
      () => call('PUT', pathOf(path.value), { body: new Blob([chosen], { type: 'application/octet-stream' }) }));
    if (came) forget();
  }

  function forget() {
    state.chosen = null;
    chooser.value = '';
    show();
  }

  async function remove(button, name) {
    const is = await ask({ title: `Remove ${name}?`,
      paragraphs: [`The next build has it no more. Revision ${state.template.revision} keeps it.`], action: 'Remove it',
      cmd: commandFor('--remove', name), danger: true });
    if (is)
      await action(button, { what: `${name} was not removed.`, done: `${name}: removed` },
        () => call('DELETE', pathOf(name)));
  }

  function show() {
    const { files, isReadOnly, chosen } = state;
    section.hidden = isReadOnly && files.length === 0;
    find('.count', section).textContent = String(files.length);
    put(find('.actions', section), !isReadOnly
      && pressable('Add or replace', { kind: 'sm', cmd: commandFor('--set', 'PATH', '--file', 'FILE'),
        key: 'context-add', run: () => chooser.click() }));
    const has = files.some(one => one.path === path.value);
    const form = chosen
      && element('div.body.row', { 'data-chosen': true }, element('span.small', `${bytes(chosen.size)} as`),
        element('span', { 'data-path': true }),
        pressable(has ? 'Replace it' : 'Add it', { kind: 'sm',
          cmd: commandFor('--set', path.value || 'PATH', '--file', chosen.name), key: 'context-put', run: send }),
        element('button.btn.sm.quiet', { key: 'context-forget', click: forget }, 'Cancel'));
    const hadFocus = document.activeElement === path;
    path.remove();
    put(body, form, files.length
      ? list()
      : !isReadOnly
        && element('div.body', element('p.muted.small', 'None: what COPY and ADD name would not be found.')));
    find('[data-path]', body)?.append(path);
    if (hadFocus) path.focus();
  }

  function list() {
    const row = ({ path: name, size, executable }) =>
      element('tr',
        element('td', element('span.mono.ref', name), executable && [' ', element('span.tag', 'executable')]),
        element('td.r', { 'data-l': 'Size' }, bytes(size)), element('td.c-act', !state.isReadOnly
          && pressable('Remove', { kind: 'sm quiet', cmd: commandFor('--remove', name), key: `remove-${name}`,
            label: `Remove ${name}`, run: button => remove(button, name) })));
    return [
      element('table.table.fold.dense.mid', { 'aria-labelledby': 'context-h' }, tableHead(['Path', ['Size', 'r'], '']),
        element('tbody', state.files.slice(0, VISIBLE_MAX).map(row))),
      state.files.length > VISIBLE_MAX
      && element('p.body.muted.small',
        `and ${state.files.length - VISIBLE_MAX} more: svc template context has them all`),
    ];
  }

  return {
    update({ template, files, reference, isReadOnly }) {
      Object.assign(state, { template, files, reference, isReadOnly });
      show();
    },
  };
}
