// The templates to choose from, each with the state of its image in one's own store.
import { element, find, findAll, icon, setAttribute } from '../frame/dom.js';
import { counted, formatSize } from '../frame/format.js';

export const NOT_ALLOWED = 'registry_not_allowed';
const FIRST = 3, MOST = 100; // shown at once; shown of all others, until something is searched for

// `factsOf` says what a template has; `chosen` is an id; `choose(template)` is called when the person takes another
// one.
export function picksOf(templates, { images, factsOf }, chosen, choose) {
  const requested = templates.find(template => template.id === chosen);
  const first = requested && templates.indexOf(requested) >= FIRST
    ? [requested, ...templates.slice(0, FIRST - 1)]
    : templates.slice(0, FIRST);
  const others = templates.filter(template => !first.includes(template));
  const draw = template =>
    pick(template, images.get(template.id), factsOf(template), template.id === chosen, () => {
      chosen = template.id;
      choose(template);
    });
  const list = element('div.pick-list', first.map(draw));
  const more = element('div.pick-list');
  const summary = element('summary', `${others.length} more: ${namesOf(others)}`);
  const rest = element('details.more', { hidden: others.length === 0, on: { toggle: fill } }, summary, more);
  const none = element('p.muted.small', { hidden: true }, 'No template matches.');
  const search = element('input.input', { type: 'search',
    placeholder: `Search ${counted(templates.length, 'template')}`, 'aria-label': 'Search templates',
    'data-search': true, on: { input: sift, keydown: takeFirst } });

  function fill() {
    if (rest.open && !more.firstChild) more.append(...others.slice(0, MOST).map(draw), ...tooMany(others.length));
  }
  // While something is searched for, all that has it; the chosen one stays chosen, seen or not.
  function sift() {
    const text = search.value.trim().toLowerCase();
    const found = text
      ? templates.filter(template => `${template.name} ${template.description}`.toLowerCase().includes(text))
      : first;
    list.replaceChildren(...found.slice(0, MOST).map(draw), ...tooMany(found.length));
    none.hidden = found.length > 0;
    more.replaceChildren();
    rest.open = false;
    rest.hidden = text !== '' || others.length === 0;
  }
  // Enter in the search takes what was found, and does not send the form.
  function takeFirst(event) {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    const input = find('input', list);
    if (!input) return;
    input.focus();
    if (!input.checked) input.click();
  }
  const node = element('div.section', { role: 'radiogroup', 'aria-labelledby': 'l-tpl' },
    element('div.row.between', element('h2', { id: 'l-tpl' }, 'Template'),
      templates.length > FIRST && element('div.search', icon('search'), search, element('kbd', '/'))), list, none,
    rest);
  // What is known of the images now; rows stay where they are.
  function showImages(known, loads) {
    if (!known) return;
    images = known;
    for (const label of findAll('.pick', node)) {
      const image = known.get(label.dataset.id), state = find('.state', label),
        [kind, text] = stateOf(templates.find(template => template.id === label.dataset.id), image,
          label.dataset.id === chosen ? loads : null);
      setAttribute(state, 'class', `state small ${kind}`);
      if (state.textContent !== text) state.textContent = text;
    }
  }
  return { node, showImages };
}

const tooMany = count => count > MOST ? [element('p.muted.small', `${count - MOST} more: search for them.`)] : [];

function namesOf(templates) {
  const names = templates.slice(0, 4).map(template => template.name).join(', ');
  return templates.length > 4 ? `${names} …` : names;
}

/** @param {Api.Template} template */
function pick(template, image, facts, isChosen, choose) {
  const [kind, text] = stateOf(template, image, null);
  return element('label.pick', { 'data-id': template.id },
    element('input', { type: 'radio', name: 'template', value: template.id, checked: isChosen,
      on: { change: choose } }),
    element('span.row.ref', element('span.name.ref', template.name),
      element('span.muted.small.ref', firstLine(template.description))),
    element('span', { class: `state small ${kind}` }, text), element('span.sub.ref', facts));
}

const firstLine = text => text.length > 160 ? `${text.slice(0, 160)}…` : text;

// What its image is, and what that costs: the kind of a state, and its words.
export function stateOf({ source, findings }, image, loads) {
  const verb = source.type === 'dockerfile' ? 'build' : 'pull';
  const status = image?.status, isRefused = (findings ?? []).some(({ code }) => code === NOT_ALLOWED);
  if (status === 'ready') return ['ok', 'In your store'];
  if (status === 'pulling') return ['busy', 'Being pulled'];
  if (status === 'building') return ['busy', 'Being built'];
  if (isRefused) return ['failed', 'Its registry is not allowed'];
  if (status === undefined) return ['stopped', ''];
  if (loads)
    return ['stopped', loads.download_bytes
      ? `${formatSize(loads.download_bytes)} to ${verb === 'pull' ? 'pull' : 'load'}`
      : 'Nothing to load'];
  return status === 'failed'
    ? ['failed', `The last ${verb} failed`]
    : ['stopped', verb === 'pull' ? 'To be pulled' : 'To be built'];
}
