// What can be done with a template, from every screen that shows one.
import { call } from '../frame/api.js';
import { ask } from '../frame/asking.js';
import { askToCancel, sendCancel } from '../parts/cancelling.js';
import { counted } from '../frame/format.js';
import { commandsOf, apiPathOf } from './about.js';
import { perform } from '../screen/page.js';

/** @param {Api.Template} template */
const pathOf = (template, rest = '') => `${apiPathOf(template)}${rest}`;

/** @param {Api.Template} template */
export function enable(button, template) {
  return perform(button, { what: `${template.name} was not enabled.`, done: `${template.name}: enabled` },
    () => call('POST', pathOf(template, '/enable'), { body: { revision: template.revision } }));
}

/** @param {Api.Template} template */
export async function disable(button, template, reference) {
  const is = await ask({
    title: `Disable ${template.name}?`,
    paragraphs: [
      'Nobody can make a workspace from it until it is enabled again. Workspaces that were made from it stay, '
      + 'and so does its image.',
    ],
    action: `Disable ${template.name}`,
    cmd: commandsOf(reference).disable,
  });
  return is
    ? perform(button, { what: `${template.name} was not disabled.`, done: `${template.name}: disabled` },
      () => call('POST', pathOf(template, '/disable'), { body: {} }))
    : null;
}

// Build or pull its image, as an operation: [the operation], or null.
/** @param {Api.Template} template */
export async function fetchImage(button, template, verb) {
  const came = await perform(button, { what: `The ${verb} of ${template.name} was not begun.`,
    done: `${template.name}: ${verb} begun` }, () => call('POST', pathOf(template, `/image/${verb}`), { body: {} }));
  return came ? [came[0].operation] : null;
}

/** @param {Api.Operation} operation */
export async function cancel(button, operation) {
  return await askToCancel(operation)
    && perform(button, { what: 'It was not cancelled.', done: 'Cancelled' }, () => sendCancel(operation.id));
}

// Delete it, after saying what stays. `using` is how many workspaces were made from it; null is not known.
/** @param {Api.Template} template */
export async function deleteTemplate(button, template, reference, using) {
  const text = [
    template.scope === 'global'
      ? 'It goes for everybody, with its revisions, its Dockerfile and the files that it is built with.'
      : 'It goes with its revisions, its Dockerfile and the files that it is built with.',
    using
      ? `${counted(using, 'workspace')} ${
        using === 1 ? 'was' : 'were'
      } made from it, so it will be refused: delete those first, or disable the template.`
      : 'No workspace was made from it. Images stay in the stores that have them.',
  ];
  const is = await ask({ title: `Delete ${template.name}?`, paragraphs: text, action: `Delete ${template.name}`,
    cmd: commandsOf(reference).delete, danger: true });
  return is
    ? perform(button, { what: `${template.name} was not deleted.`, done: `${template.name}: deleted` },
      () => call('DELETE', pathOf(template)))
    : null;
}
