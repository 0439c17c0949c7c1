// What can be done with a template, from every screen that shows one.
import { call } from '../frame/api.js';
import { find } from '../frame/dom.js';
import { ask } from '../frame/asking.js';
import { askToCancel } from '../shared/cancelling.js';
import { counted } from '../frame/format.js';
import { commandsOf } from './about.js';
import { perform } from '../screen/perform.js';

/** @param {Api.Template} template */
const pathOf = (template, rest = '') => `/api/templates/${encodeURIComponent(template.id)}${rest}`;

// What the button of a refusal says: the request that its action names.
export async function actOf(action) {
  await perform(find('[data-answer] [data-key=act]'), { what: `${action.label}:`, done: `${action.label}: begun`,
    act: actOf }, () => call(action.method, action.path, { body: action.body }));
}

/** @param {Api.Template} template */
export function enable(button, template) {
  return perform(button, { what: `${template.name} was not enabled.`, done: `${template.name}: enabled`, act: actOf },
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
    line: commandsOf(reference).disable,
  });
  return is
    ? perform(button, { what: `${template.name} was not disabled.`, done: `${template.name}: disabled`, act: actOf },
      () => call('POST', pathOf(template, '/disable'), { body: {} }))
    : null;
}

// Build or pull its image, as an operation: [the operation], or null.
/** @param {Api.Template} template */
export async function fetchImage(button, template, verb) {
  const came = await perform(button, { what: `The ${verb} of ${template.name} was not begun.`,
    done: `${template.name}: ${verb} begun`, act: actOf },
    () => call('POST', pathOf(template, `/image/${verb}`), { body: {} }));
  return came ? [came[0].operation] : null;
}

/** @param {Api.Operation} operation */
export async function cancel(button, operation) {
  return await askToCancel(operation)
    && perform(button, { what: 'It was not cancelled.', done: 'Cancelled' },
      () => call('POST', `/api/operations/${encodeURIComponent(operation.id)}/cancel`, { body: {} }));
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
    line: commandsOf(reference).delete, danger: true });
  return is
    ? perform(button, { what: `${template.name} was not deleted.`, done: `${template.name}: deleted`, act: actOf },
      () => call('DELETE', pathOf(template)))
    : null;
}
