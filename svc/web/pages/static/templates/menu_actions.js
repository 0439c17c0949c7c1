// What is done with a template now and then: loaded when it is pressed. `send` is the screen's own: screen/page.js
// knows the screen that has begun it, and a file that is loaded later would have another copy.
import { call } from '../frame/api.js';
import { ask } from '../frame/asking.js';
import { element } from '../frame/dom.js';
import { commandsOf, apiPathOf } from './about.js';

/** @param {Api.Template} template */
const templatePath = (template, rest = '') => `${apiPathOf(template)}${rest}`;

/** @param {Api.Template} template */
export async function removeImage(send, button, template, reference, users) {
  const is = await ask({
    title: `Remove the image of ${template.name}?`,
    paragraphs: [
      `It goes from your store; others keep theirs. The template stays, and the image can be ${
        template.source.type === 'dockerfile' ? 'built' : 'pulled'
      } again.`,
      users.length
        ? `These workspaces of yours need it, so it will be refused: ${users.join(', ')}.`
        : 'No workspace of yours needs it.',
    ],
    action: 'Remove the image',
    cmd: commandsOf(reference).removeImage,
    danger: true,
  });
  return is
    ? send(button, { what: 'The image was not removed.', done: 'Image removed' },
      () => call('DELETE', templatePath(template, '/image')))
    : null;
}

// A bundle of it, by a link with a one-time ticket: the browser saves it without holding it in memory.
/** @param {Api.Template} template */
export async function exportTemplate(send, button, template) {
  const came = await send(button, { what: `${template.name} was not exported.` },
    () => call('POST', '/api/tickets', { body: { url: templatePath(template, '/export') } }));
  if (!came) return;
  const link = element('a', { href: came[0].url, download: `${template.name}.tar`, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
}
