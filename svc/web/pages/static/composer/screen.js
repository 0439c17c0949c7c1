// The composer: a new workspace, with what is left for it, what would happen, and the set-up as it goes on.
import { call } from '../frame/api.js';
import { element, find, replace, setAttribute } from '../frame/dom.js';
import { onGap } from '../frame/events.js';
import { asker } from './asker.js';
import { freeName, levelFor, argumentOfTemplate } from './choice.js';
import {
  formOf,
  setResources,
  showFolded,
  showLevels,
  showRecommended,
  showTemplate,
  showWrong,
  textsOf,
} from './form.js';
import { isOffline } from '../frame/frame.js';
import { delayed } from '../frame/turns.js';
import { setCommand, toast } from '../frame/foot.js';
import { announce, refused } from '../frame/notices.js';
import { askLoads, chosen, known, loadsOf, readAgain, readAll, readImages, readSetups } from './known.js';
import { likelyGpus, roomOf } from './room.js';
import { isVisible, openPage, refresh, startPage } from '../screen/page.js';
import { fieldOf } from '../parts/form.js';
import { hasGpus } from '../parts/gpu_fields.js';
import { WORKSPACE_START } from '../generated/actions.js';
import { RESOURCES, setupCommand, requestOf, textOf, requestedOf } from './values.js';

const CAPACITY_MS = 10_000, SETUP_MS = 5_000;
const query = new URLSearchParams(location.search);

const states = () => import('./states.js');
const later = import('./plan.js'); // beside what is read
let plan = null, form = null, picks = null, room = null, setup = null, busy = '', problem = null, first = null;

const place = find('#screen');

// ---- reading ----

async function images() {
  await readImages();
  if (!picks) return;
  showLoads();
  askLoads(showLoads);
}

async function read({ background }) {
  if (background && isVisible()) return { isOther: await whatIsLeft({ names: true }) };
  if (query.get('setup'))
    return { operation: await call('GET', `/api/operations/${encodeURIComponent(query.get('setup'))}`) };
  const { workspaces, setups } = await readAll();
  plan = await later;
  const start = known.usable.length ? plan.startOf(query, known.usable, workspaces) : null;
  const [levels, more] = await Promise.all([start && recommend(start.template).catch(() => null),
    start?.source && import('./more.js')]);
  return { workspaces, setups, start, levels, more };
}

// What is left changes by what others do. Where it cannot be read, what is shown stays.
const whatIsLeft = async ({ names }) => known.isRead && readAgain({ names }).catch(() => false);

function took(found) {
  if ('isOther' in found) takeLeft(found.isOther);
  else first = found;
}

function takeLeft(isOther) {
  if (!isOther || !form || setup) return;
  showRoom();
  recommendSoon({ background: true });
  checkSoon({ background: true });
}

const showSetups = setups => find('[data-notes]')?.replaceChildren(...setups.map(plan.underWay));

// ---- asking, while the form is typed into ----

const checkSoon = asker(async (options, isNewest) => {
  const { body, wrong } = now();
  if ([...wrong.keys()].some(name => name !== 'name')) return;
  const { name, ...rest } = body;
  try {
    const answer = await call('POST', '/api/workspaces/check', { ...options, body: wrong.has('name') ? rest : body });
    if (!isNewest() || setup) return;
    known.check = answer;
    problem = null;
    const taken = answer.blocked_by.find(block => block.code === 'name_taken');
    known.wrong = new Map(taken && name ? [['name', sentenceOf(taken)]] : []);
  } catch (error) {
    if (!isNewest() || error.retryable || !error.status) throw error;
    takeRefusal(error);
  }
  showForm();
});

const sentenceOf = ({ message, hint }) => hint ? `${message}: ${hint}` : message;

/** @param {Api.Template} template */
async function recommend(template, options = {}) {
  const answer = await call('POST', '/api/workspaces/recommend', { ...options,
    body: { template: template.id, gpu_use_case: level(template) } });
  return new Map([answer, ...answer.alternatives].map(found => [found.gpu_use_case, found]));
}

const recommendSoon = asker(async (options, isNewest) => {
  const { template } = chosen, levels = await recommend(template, options);
  if (!isNewest() || setup || chosen.template !== template) return;
  known.levels = levels;
  if (!chosen.isTouched) fill();
  update();
});

function showLoads() {
  picks.showImages(known.images, loadsOf(chosen.template));
  showPlan();
}

// ---- choosing ----

// `levels` are there already for the first one; `keeps` leaves the values of another workspace.
/** @param {Api.Template} template */
function choose(template, { keeps = false, levels = null } = {}) {
  chosen.template = template;
  Object.assign(known, { levels: levels ?? new Map(), check: null, wrong: new Map() });
  problem = null;
  if (!keeps) Object.assign(chosen, { isTouched: false, level: levelFor(template, known.capacity.host) });
  if (!keeps && levels) fill();
  showTemplate(form, template);
  if (find('details[data-rest]', form).open) openFolded();
  if (!chosen.isNamed) find('[name=name]', form).value = freeName(template.name, known.names);
  if (!levels) recommendSoon();
  askLoads(showLoads);
  showForm();
  checkSoon({ wait: levels ? 0 : undefined });
}

function chooseLevel(name) {
  Object.assign(chosen, { level: name, isTouched: false });
  fill();
  recommendSoon();
  update();
}

/** @param {Api.Template} template */
const level = template => chosen.level ?? levelFor(template, known.capacity.host);
const recommended = () => known.levels.get(level(chosen.template))?.resources ?? null;

function fill() {
  if (recommended()) setResources(form, recommended());
}

// The values of a workspace: all that a new one can be asked for.
/** @param {Api.Template} template */
function takeOver(source, template, levels, { fillLike }) {
  Object.assign(chosen, { isTouched: true, isNamed: true });
  find('[name=name]', form).value = freeName(source.name.replace(/-\d+$/, ''), known.names);
  const resources = fillLike(form, source, template);
  choose(template, { keeps: true, levels });
  setResources(form, resources);
  update();
}

async function openFolded() {
  const { openMore, showFacts } = await import('./more.js');
  openMore(find('[data-rest]', form), update);
  showFacts(form, chosen.template);
}

// ---- showing ----

/** @param {Api.Template} template */
const text = template => argumentOfTemplate(template, known.templates);

// The form as a request, and what is wrong with it by itself.
function now() {
  const texts = textsOf(form, chosen.template);
  return { texts, ...requestOf(texts, known.names) };
}

// All that follows the form, in the task of the key that was pressed.
function update() {
  showForm();
  checkSoon();
}

function showForm() {
  if (!form || setup) return;
  const { texts, body, wrong } = now();
  const { template } = chosen, ours = recommended();
  setCommand(setupCommand(texts, body, text(template)));
  const requested = requestedOf(body.resources ?? {}, template);
  room.show(requested, gpusFor(requested, modeOf(body)));
  showLevels(form, chosen.level, known.levels);
  showRecommended(form, ours, template.limits, requested.gpus);
  showFolded(form, texts, body);
  find('[data-back]', form).hidden = !ours
    || Object.keys(RESOURCES).every(key => texts[key] === textOf(key, ours[key]));
  setAttribute(find('[data-back]', form), 'data-cmd', ['ws recommend', '--template', text(template), '--gpu-use-case',
    level(template)]);
  if (!chosen.isSent && texts.name === '') wrong.delete('name');
  showWrong(form, new Map([...known.wrong, ...wrong]));
  showPlan({ texts, body });
}

function gpusFor(requested, mode) {
  const { check, capacity } = known;
  if (check && check.resources.gpu_count === requested.gpus && check.resources.gpu_mode === mode && check.gpus.length)
    return check.gpus.map(gpu => gpu.uuid);
  return likelyGpus(capacity, requested.gpus, mode, chosen.template.gpu.min_vram_bytes);
}

function showRoom() {
  const fresh = roomOf(known.capacity);
  find('.a-room', form).replaceWith(fresh.node);
  room = fresh;
  showForm();
}

function showPlan(visible) {
  if (!form || setup) return;
  const { texts, body } = visible ?? now(), { template } = chosen;
  const commandFor = start => setupCommand(texts, body, text(template), { start });
  const free = likelyGpus(known.capacity, 99, modeOf(body), template.gpu.min_vram_bytes).length;
  const { plan: steps, bar } = plan.planOf({ known, template, free, busy, problem, name: texts.name || 'NAME',
    requested: requestedOf(body.resources ?? {}, template),
    commands: { both: commandFor(true), create: commandFor(false) } }, {
    createOnly: () => send('only'),
    mend,
    act,
  });
  replace(find('[data-plan]', form), steps);
  showBar(...bar);
}

function showBar(...content) {
  replace(find('[data-go]'), ...content);
  find('[data-go]').hidden = content.length === 0;
}

const modeOf = body => body.resources?.gpu_mode ?? chosen.template.defaults.gpu_mode;

// ---- what the buttons of the plan do ----

function mend({ key, value }) {
  fieldOf(form, `resources.${key}`).value = textOf(key, value);
  chosen.isTouched = true;
  update();
  fieldOf(form, `resources.${key}`).focus();
}

async function act(action) {
  if (isOffline() || busy) return;
  busy = 'act';
  showPlan();
  try {
    await call(action.method, action.path, { body: action.body });
    toast(`${action.label}: done`);
  } catch (error) {
    problem = refused(error, { what: `${action.label}:` });
  }
  busy = '';
  await refresh();
  checkSoon({ wait: 0 });
  showPlan();
}

// ---- sending ----

async function send(key) {
  if (isOffline() || busy || setup) return;
  chosen.isSent = true;
  const { body, wrong } = now();
  if (wrong.size || known.wrong.size) {
    pointAt(new Map([...known.wrong, ...wrong]));
    return;
  }
  if (key === 'go' && find('[data-blocked]', form)) {
    find('[data-blocked]', form).focus();
    return;
  }
  busy = key;
  problem = null;
  showPlan();
  try {
    const { operation } = await call('POST', '/api/workspaces/setup', { body });
    await follow(operation, { wantsStart: key === 'go', again: () => {
      backToForm();
      send(key);
    } });
    busy = '';
  } catch (error) {
    busy = '';
    const running = error.code === 'operation_in_progress' ? error.details?.operation : null;
    if (running) {
      follow(running, { wantsStart: key === 'go', again: null });
      return;
    }
    if (error.status !== 401) takeRefusal(error);
    showPlan();
    if (known.wrong.size) pointAt(known.wrong);
    else find('.a-plan .notice[role=alert]', form)?.focus();
  }
}

// Errors of fields go to their fields, all else to a notice.
function takeRefusal(error) {
  known.wrong = new Map((error.fields ?? []).map(({ field, message }) => [field, message]));
  if (error.code === 'name_taken') known.wrong.set('name', error.message);
  known.check = null;
  const { rest } = showWrong(form, known.wrong);
  problem = known.wrong.size && rest.length === 0
    ? null
    : refused(error, { what: '', act, retry: error.retryable ? () => send('go') : null });
}

// The focus to the first field that has something wrong, unfolded.
function pointAt(wrong) {
  const { first } = showWrong(form, wrong);
  first?.closest('details')?.setAttribute('open', '');
  first?.focus();
}

// ---- a set-up under way ----

/** @param {Api.Operation} operation */
async function follow(operation, { wantsStart, again }) {
  const { setupOf } = await import('./setup.js').catch(() => ({ setupOf: null }));
  const address = `/new?setup=${encodeURIComponent(operation.id)}${wantsStart ? '&start=1' : ''}`;
  if (!setupOf) {
    location.assign(address);
    return;
  } // of another release by now
  history.replaceState(null, '', address);
  setup = setupOf(operation, { wantsStart,
    on: { arrived, back: form ? backToForm : () => location.assign('/new'), again, announce } });
  setCommand(
    [['operation watch', operation.id], wantsStart && [WORKSPACE_START, operation.subject.name]]
  );
  if (form) {
    find('.a-form', form).inert = true;
    find('[data-plan]', form).replaceChildren(setup.node);
  } else {
    place.replaceChildren(element('div.cols.half', setup.node));
  }
  showBar();
  find('#work-h').focus();
  setup.refresh(); // what happened before it was listened to
}

function backToForm() {
  setup = null;
  history.replaceState(null, '', '/new');
  find('.a-form', form).inert = false;
  update();
  find('[data-go] [data-key=go], .a-plan [data-blocked]')?.focus();
}

const arrived = (name, isStarted) =>
  location.assign(`/workspaces/${encodeURIComponent(name)}${isStarted ? '/terminal' : ''}`);

// ---- the whole ----

function build({ workspaces, start: { template, source, lost }, levels, more }) {
  const sections = formOf({ hasGpus: hasGpus(known.capacity),
    missing: workspaces.flatMap(workspace => workspace.limits_missing) }, { level: chooseLevel, recommended: () => {
      chosen.isTouched = false;
      fill();
      update();
    }, more: openFolded });
  picks = plan.templatePicks(known.usable, { images: known.images ?? new Map(), factsOf: plan.factsOf }, template.id,
    choose);
  room = roomOf(known.capacity);
  form = element('form.composer', { id: 'composer', novalidate: true,
    on: { input: typed, keydown: entered, submit: event => {
      event.preventDefault();
      send('go');
    } } }, element('div.stack-4.a-form', element('div.panel', element('div.body.stack-4', picks.node, ...sections))),
    room.node,
    element('div.stack-4.a-plan', element('div.stack-4', { 'data-plan': true }),
      element('div.stack-2', { 'data-notes': true })));
  if (source) takeOver(source, template, levels, more);
  else choose(template, { levels });
  place.replaceChildren(...[lost && plan.lostNotice(lost), form].filter(Boolean));
}

function typed({ target }) {
  if (target.dataset.search !== undefined || target.name === 'template' || target.name === 'level') return;
  if (target.name === 'name') chosen.isNamed = target.value !== '';
  if (target.dataset.field?.startsWith('resources.')) chosen.isTouched = true;
  for (const name of [...known.wrong.keys()])
    if (name === target.dataset.field || /^(env|ports)\b/.test(name)) known.wrong.delete(name);
  update();
}

// Enter sends the form, and says why where nothing can be sent.
function entered({ key, target }) {
  if (key === 'Enter' && target.matches('input[data-field]') && !find('[data-go] [type=submit]')) send('go');
}

function show({ isNew }) {
  if (!isNew) {
    setup?.show();
    showForm();
    return;
  }
  const { operation, setups, start } = first;
  if (operation?.status === 'succeeded') arrived(operation.result.name, false);
  else if (operation) follow(operation, { wantsStart: query.get('start') === '1', again: null });
  else if (start) build(first);
  else {
    place.replaceChildren(plan.noTemplate());
    showBar();
  }
  if (setups) showSetups(setups);
}

function back() {
  if (known.isRead) images().catch(() => {});
  if (setup) setup.refresh();
  else readSetups().then(showSetups);
}

const imagesSoon = delayed(() => images().catch(() => {}), 150);

function wants(event) {
  setup?.handle(event);
  if (event.type === 'image.status_changed' && known.images) imagesSoon();
  if (event.type === 'operation.finished' && !setup) readSetups().then(showSetups);
  return event.type === 'capacity.changed' || event.type.startsWith('workspace.');
}

onGap(() => setup?.refresh());
setInterval(async () => {
  if (!document.hidden && !isOffline() && !setup) takeLeft(await whatIsLeft({ names: false }));
}, CAPACITY_MS);
setInterval(() => {
  if (!document.hidden && !isOffline()) setup?.refresh();
}, SETUP_MS);
window.addEventListener('focus', () => {
  if (!isOffline()) refresh();
});

await startPage({ read, took, show, wants, back, unready: showBar,
  loading: async () => place.firstChild ? null : (await states()).formSkeleton(),
  gone: async error => (await states()).notComposed(error, openPage) });
await Promise.allSettled([images(), import('./setup.js'), import('./more.js')]);
