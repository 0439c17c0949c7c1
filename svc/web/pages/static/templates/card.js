// One card of the gallery.
import { element } from '../frame/dom.js';
import {
  addressOf,
  brings,
  commandsOf,
  gives,
  imageState,
  isBarred,
  originOf,
  mayChange,
  needsBuild,
  tagOf,
} from './about.js';
import { pressable } from './page.js';

const fact = (title, ...content) => [element('dt', title), ...content];

// `context`: reference, image, nameOf (of another template), and what its buttons do: build, enable, clone.
/** @param {Api.Template} template */
export function cardOf(template, context) {
  const { reference, image, nameOf } = context;
  const from = originOf(template, nameOf), users = image?.used_by ?? [],
    revision = element('span.muted.small.num', `revision ${template.revision}`);
  return element('li.card', { 'data-id': template.id },
    element('div.stack',
      element('div.row.between',
        element('a.name.ref', { href: addressOf(reference), cmd: commandsOf(reference).get,
          key: `name-${template.id}` }, template.name), tagOf(template, image) ?? revision),
      template.description && element('span.soft.small.ref', template.description)),
    element('dl.facts', fact('Size', element('dd', gives(template))), fact('Apps', element('dd', brings(template))),
      fact('Image', element('dd.mono.clip', { title: from }, from)), fact('State', element('dd', imageState(image))),
      users.length > 0
        && fact('Used by', element('dd.clip', { title: users.join(', ') }, element('span.mono', users.join(', '))))),
    element('div.foot', buttonsFor(template, context)));
}

/** @param {Api.Template} template */
function buttonsFor(template, { reference, image, build, enable, clone }) {
  const commands = commandsOf(reference), { id } = template;
  const link = (label, key, what, href, cmd) =>
    element('a.btn.sm', { href, cmd, key: `${key}-${id}`, 'aria-label': `${what} ${template.name}` }, label);
  const copy = pressable('Clone', { kind: 'sm quiet', cmd: commands.clone(`my-${template.name}`), key: `clone-${id}`,
    label: `Clone ${template.name}`, run: () => clone(template) });
  if (isBarred(template, image))
    return [
      element('a.btn.sm', { href: addressOf(reference), cmd: commands.get, key: `why-${id}`,
        'aria-label': `Why ${template.name} cannot be used` }, 'Why'),
      copy,
    ];
  if (template.status === 'enabled')
    return [
      link('New workspace', 'use', 'New workspace from', `/new?template=${encodeURIComponent(reference)}`,
        commands.use),
      copy,
    ];
  if (!mayChange(template)) return [copy];
  const edit = element('a.btn.sm.quiet', {
    href: addressOf(reference, template.source.has_dockerfile ? 'dockerfile' : ''),
    cmd: template.source.has_dockerfile ? commands.dockerfile : commands.get,
    key: `edit-${id}`,
    'aria-label': `Edit ${template.name}`,
  }, 'Edit');
  if (template.scope === 'global')
    return [
      link('Review', 'review', 'Review', `/admin/templates/${encodeURIComponent(id)}`, commands.get),
      copy,
    ];
  if (image?.operation)
    return [
      link(`See the ${image.operation.kind}`, 'see', `See the ${image.operation.kind} of`,
        addressOf(reference, 'dockerfile'), ['operation watch', image.operation.id]),
      edit,
    ];
  if (needsBuild(template, image))
    return [
      pressable('Build it', { kind: 'sm', cmd: commands.build, key: `build-${id}`, label: `Build it: ${template.name}`,
        run: button => build(button, template) }),
      edit,
    ];
  return [
    pressable('Enable it', { kind: 'sm', cmd: commands.enable(template.revision), key: `enable-${id}`,
      label: `Enable it: ${template.name}`, run: button => enable(button, template) }),
    edit,
  ];
}
