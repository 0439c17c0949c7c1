// What is done with a template now and then: loaded when it is pressed.
import { call } from '../frame/api.js';
import { ask } from '../frame/asking.js';
import { element } from '../frame/dom.js';
import { commandsOf } from './about.js';
import { actOf } from './deeds.js';
import { deed } from '../shared/page.js';

const templatePath = (template, rest = '') => `/api/templates/${encodeURIComponent(template.id)}${rest}`;

export async function removeImage(button, template, reference, users) {
  const is = await ask({
    title: `Remove the image of ${template.name}?`,
    words: [`It goes from your store; others keep theirs. The template stays, and the image can be ${template.source.type === 'dockerfile' ? 'built' : 'pulled'} again.`,
      users.length ? `These workspaces of yours need it, so it will be refused: ${users.join(', ')}.` : 'No workspace of yours needs it.'],
    deed: 'Remove the image', line: commandsOf(reference).removeImage, danger: true,
  });
  return is ? deed(button, { what: 'The image was not removed.', done: 'Image removed', act: actOf }, () => call('DELETE', templatePath(template, '/image'))) : null;
}

// A bundle of it, by a link with a one-time ticket: the browser saves it without holding it in memory.
export async function exportTemplate(button, template) {
  const came = await deed(button, { what: `${template.name} was not exported.` }, () => call('POST', '/api/tickets', { body: { url: templatePath(template, '/export') } }));
  if (!came) return;
  const link = element('a', { href: came[0].url, download: `${template.name}.tar`, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
}
