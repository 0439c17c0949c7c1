// Dialogs that make a template: import of a bundle, a new one from an image or a Dockerfile, a clone.
import { call } from '../frame/api.js';
import { command, element, find, icon, setAttribute } from '../frame/dom.js';
import { commandText, quoted } from '../frame/commands.js';
import { ADMIN_TEMPLATE_IMPORT, TEMPLATE_CREATE, TEMPLATE_IMPORT } from '../generated/actions.js';
import { addressOf, commandsOf, apiPathOf } from './about.js';
import { openDialog } from '../parts/dialogs.js';
import { formDialog } from '../parts/form_dialog.js';
import { field, plainInput } from '../parts/form.js';
import { noticePlace, sendForm } from '../parts/send_form.js';

const BUNDLE_MAX = 64 * 2 ** 20;
const TAR = 'application/x-tar';

// Choose a bundle and import it, for oneself or (`isGlobal`) for everybody; `done(template)` follows.
export function askForBundle({ isGlobal = false, done }) {
  const commandFor = name =>
    isGlobal
      ? [ADMIN_TEMPLATE_IMPORT, name, '--global']
      : [TEMPLATE_IMPORT, name, '--build-later'];
  const input = element('input.vh', { type: 'file', accept: '.tar', 'aria-label': 'Bundle', 'data-field': 'bundle' });
  const visible = command(commandFor('')), name = element('span');
  const go = element('button.btn.primary', { type: 'submit', 'aria-disabled': true, cmd: commandFor('') }, 'Import');
  let file = null;
  const choose = chosen => {
    file = chosen ?? file;
    if (!file) return;
    const isLarge = file.size > BUNDLE_MAX;
    name.replaceChildren(element('b.mono.ref', file.name), isLarge ? ' is over 64 MiB: no bundle is.' : '');
    setAttribute(go, 'aria-disabled', isLarge);
    setAttribute(go, 'data-cmd', commandFor(file.name));
    find('code', visible).textContent = commandText(commandFor(file.name));
  };
  name.append(element('b', 'Choose a bundle'), ' or drop it here');
  const drop = element('label.drop', { on: {
    dragover: event => event.preventDefault(),
    drop: event => {
      event.preventDefault();
      choose(event.dataTransfer.files[0]);
    },
  } }, icon('upload'), name, element('span.tiny', '.tar, at most 64 MiB'), input);
  input.addEventListener('change', () => choose(input.files[0]));
  const form = element('form', { 'data-import': true, on: { submit: event => {
    event.preventDefault();
    send();
  } } }, element('p.soft', isGlobal
    ? 'The template is disabled and waits here. One with a Dockerfile is built in your store before you '
      + 'can enable it.'
    : ['A .tar that ', element('code', 'svc template export'),
      ' wrote. The template is yours, and disabled until you enable it; one with a Dockerfile is built before.']),
    element('div.field', drop), noticePlace(), visible, isGlobal
    && element('p.muted.small', 'On the host, bundles with a Dockerfile are refused: this is where they come in.'),
    element('div.ends', element('button.btn', { click: () => dialog.close() }, 'Cancel'), go));
  const send = () =>
    file && go.getAttribute('aria-disabled') !== 'true'
    && sendForm(form, go, `${file.name} was not imported.`, async () => {
      done(
        await call('POST', `/api/templates/import${isGlobal ? '?scope=global' : ''}`, {
          body: new Blob([file], { type: TAR }),
        })
      );
      dialog.close();
    });
  const dialog = openDialog(isGlobal ? 'Import for everybody' : 'Import a bundle', form);
  input.focus();
}

// A new template: name, what it is for, and an image or a Dockerfile. All else is edited on its own page.
export function askForTemplate() {
  const name = plainInput('mono', { required: true, maxlength: '63', name: 'name' });
  const texts = element('input.input', { autocomplete: 'off', maxlength: '1024', name: 'description' });
  const image = plainInput('mono', { name: 'image_ref', placeholder: 'registry.example/team/image:1' });
  const text = element('textarea.input.mono', { rows: '8', spellcheck: 'false', wrap: 'off', name: 'dockerfile',
    placeholder: 'FROM registry.example/team/image:1' });
  const imageField = field('source.image_ref', 'Image', image, {
    help: 'Each user pulls it once, from a registry that is allowed here.',
  });
  const textField = field('source.dockerfile', 'Dockerfile', text, {
    help: 'Built in your own store, before the template is enabled. Files that it copies come in by a bundle or '
      + 'svc template create --context.',
  });
  const kind = (value, title) =>
    element('label',
      element('input', { type: 'radio', name: 'type', value, checked: value === 'registry', on: { change: () =>
        follow() } }), title);
  const kinds = element('div.seg', { role: 'radiogroup', 'aria-label': 'Made from' }, kind('registry', 'An image'),
    kind('dockerfile', 'A Dockerfile'));
  const isText = () => find('[name=type]:checked', kinds).value === 'dockerfile';
  const body = () => ({ name: name.value.trim(), ...texts.value.trim() && { description: texts.value.trim() },
    source: isText()
      ? { type: 'dockerfile', dockerfile: text.value }
      : { type: 'registry', image_ref: image.value.trim() } });
  const json = value => `echo ${quoted(JSON.stringify(value))} |`;
  const commandOf = () => {
    const { source, ...rest } = body();
    if (!isText())
      return `${
        json({ ...rest, name: rest.name || 'NAME', source: { ...source, image_ref: source.image_ref || 'IMAGE' } })
      } ${commandText([TEMPLATE_CREATE, '-'])}`;
    const list = ['template create', '--dockerfile', 'Dockerfile', '--name', rest.name || 'NAME'];
    return rest.description
      ? `${json({ description: rest.description })} ${commandText([...list, '--file', '-'])}`
      : list;
  };
  const follow = () => {
    imageField.hidden = isText();
    textField.hidden = !isText();
    image.required = !isText();
    text.required = isText();
  };
  follow();
  return formDialog({
    title: 'New template',
    fields: [field('name', 'Name', name, { help: 'Lower-case letters, digits and -.' }),
      field('description', 'What it is for', texts, { optional: true }), kinds, imageField, textField],
    commandOf,
    action: 'Create',
    checks: true,
    failed: () => `${name.value} was not created.`,
    send: async () => {
      const created = await call('POST', '/api/templates', { body: body() });
      location.assign(addressOf(created.name, isText() ? 'dockerfile' : ''));
    },
  });
}

// Ask for the name of a clone, and make it.
/** @param {Api.Template} template */
export function askForClone(template, reference) {
  const name = plainInput('mono', { value: `my-${template.name}`.slice(0, 63), required: true, maxlength: '63' });
  const text = template.source.has_dockerfile
    ? 'The clone is yours, with a Dockerfile and files of its own that you can change. It is built '
      + 'before it is enabled.'
    : 'The clone is yours, and you can change it. Values of secret variables come along from your own '
      + 'templates only.';
  return formDialog({
    title: `Clone ${template.name}`,
    fields: [element('p.soft', text), field('name', 'Name', name)],
    commandOf: () => commandsOf(reference).clone(name.value),
    action: 'Clone',
    checks: true,
    failed: `${template.name} was not cloned.`,
    send: async () => {
      const created = await call('POST', `${apiPathOf(template)}/clone`, {
        body: { name: name.value },
      });
      location.assign(addressOf(created.name, created.source.has_dockerfile ? 'dockerfile' : ''));
    },
  });
}
