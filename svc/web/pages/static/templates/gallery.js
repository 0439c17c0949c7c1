// The templates screen: a card for each, everybody's and one's own.
import { all } from '../frame/api.js';
import { command, element, find, icon, empty } from '../frame/dom.js';
import { skeleton } from '../frame/frame.js';
import { TEMPLATE_CREATE, TEMPLATE_IMPORT } from '../generated/actions.js';
import { setCommand } from '../frame/foot.js';
import { addressOf, referenceOf } from './about.js';
import { cardOf } from './card.js';
import { enable, fetchImage } from './actions.js';
import { startPage } from '../screen/page.js';
import { filtersOf, hasText, showFilters } from '../parts/lists.js';
import { pressable, putIn } from './page.js';

const AT_ONCE = 60; // cards of a group; the rest on demand
const FILTERS = { all: 'All', global: "Everybody's", private: 'Mine' };
const GROUPS = [['global', "Everybody's"], ['private', 'Yours']];

const dialogs = () => import('./making.js');
const known = { templates: /** @type {Api.Template[]} */ ([]), images: new Map() };
const view = { filter: 'all', text: '', most: { global: AT_ONCE, private: AT_ONCE } };

async function read(options) {
  const [templates, images] = await Promise.all([all('/api/templates?sort=name', options),
    all('/api/images', options)]);
  known.templates = templates;
  known.images = new Map(images.filter(image => image.template).map(image => [image.template.id, image]));
}

const nameOf = id => known.templates.find(template => template.id === id)?.name ?? 'another';

/** @param {Api.Template} template */
const matches = ({ name, description, source }) => hasText(view.text, [name, description, source.image_ref]);

// ---- showing ----

function show() {
  const screen = find('#screen');
  if (known.templates.length === 0) {
    putIn(screen, emptyGallery());
    showCounts();
    return;
  }
  if (!find('[data-list]', screen))
    screen.replaceChildren(filters(), ...GROUPS.map(groupOf),
      element('p.muted', { 'data-none': true, hidden: true }, 'No template matches.'));
  showCards();
}

function emptyGallery() {
  return empty('No template yet',
    element('p', 'A template names an image, or has a Dockerfile, and sets what a workspace made from it gets. '
      + 'Administrators enable those for everybody; make or import one of your own.'),
    command(['template create', '--dockerfile', 'Dockerfile', '--name', 'NAME']));
}

const filters = () =>
  filtersOf({ label: 'Search templates', placeholder: 'Name, description, image', filters: FILTERS, view,
    again: showCards });

const groupOf = ([scope, title]) =>
  element('section.stack-2', { 'aria-labelledby': `group-${scope}`, 'data-list': scope },
    element('h2', { id: `group-${scope}` }, title), element('ul.cards'), element('div', { 'data-rest': true }));

function showCards() {
  let number = 0;
  for (const [scope] of GROUPS) {
    const group = find(`[data-list=${scope}]`);
    if (!group) continue;
    const found = known.templates.filter(template => template.scope === scope && matches(template));
    number += view.filter === 'all' || view.filter === scope ? found.length : 0;
    group.hidden = found.length === 0 || (view.filter !== 'all' && view.filter !== scope);
    putIn(find('.cards', group), ...found.slice(0, view.most[scope]).map(card));
    const rest = found.length - view.most[scope];
    putIn(find('[data-rest]', group), rest > 0 && element('button.btn', { key: 'rest', click: () => {
      view.most[scope] += 2 * AT_ONCE;
      showCards();
    } }, `Show more of ${found.length}`));
  }
  find('[data-none]').hidden = number > 0;
  showCounts();
}

/** @param {Api.Template} template */
function card(template) {
  const reference = referenceOf(template, known.templates);
  return cardOf(template, {
    reference,
    nameOf,
    image: known.images.get(template.id),
    enable,
    clone: async one => (await dialogs()).askForClone(one, referenceOf(one, known.templates)),
    build: async (button, one) => {
      if (await fetchImage(button, one, 'build')) location.assign(addressOf(reference, 'dockerfile'));
    },
  });
}

function showCounts() {
  const found = known.templates.filter(matches);
  showFilters(view, name => found.filter(({ scope }) => name === 'all' || scope === name).length);
  setCommand(['template list']);
}

function loading() {
  const skeletonNow = () =>
    element('li.card', element('div.stack-2', skeleton('2')), element('div.stack-2', skeleton('4', '3', '4', '2')),
      element('div.foot', skeleton('3')));
  return element('div.stack-4', element('div.filters', element('div.search', element('span.skel.box'))),
    element('section.stack-2', { 'aria-busy': true, 'aria-label': 'Loading templates' }, element('div', skeleton('2')),
      element('ul.cards', skeletonNow(), skeletonNow(), skeletonNow(), skeletonNow())));
}

find('[data-actions]').replaceChildren(
  pressable([icon('upload'), 'Import'], { cmd: [TEMPLATE_IMPORT, null, '--build-later'], key: 'import',
    run: async () =>
      (await dialogs()).askForBundle({
        done: created => location.assign(addressOf(created.name, created.source.has_dockerfile ? 'dockerfile' : '')),
      }) }),
  pressable([icon('plus'), 'New template'], { kind: 'primary', cmd: [TEMPLATE_CREATE, 'template.json'], key: 'new',
    run: async () => (await dialogs()).askForTemplate() })
);
await startPage({
  read,
  show,
  loading,
  failed: 'The templates could not be read.',
  wants: ({ type }) =>
    type.startsWith('template.') || type.startsWith('image.') || type.startsWith('operation.')
    || type.startsWith('workspace.'),
});
