// What the head of a workspace's pages does: start, stop, restart, and the menu.
import { call } from '../frame/api.js';
import { element, find, icon, setAttribute } from '../frame/dom.js';
import { ask, isAway } from '../frame/frame.js';
import { toast } from '../frame/line.js';
import { refused } from '../frame/notices.js';
import { quoted } from '../frame/words.js';
import { COMMANDS, DEEDS, KEEP_HOURS, QUESTIONS } from '../workspaces/deeds.js';
import { formDialog, labelled } from './dialogs.js';
import { upgradeDialog } from './upgrade.js';

const acting = { record: null, version: null, doing: null, done: () => {}, redraw: () => {} };

// `listener` gets the record after a deed, or null where it must be read anew.
export const onDone = (listener, redraw) => { acting.done = listener; acting.redraw = redraw; };

const acted = record => `/api/workspaces/${encodeURIComponent(record.id)}`;

// ---- the buttons ----

export function headActions(record, { version, hasPrimary }) {
  Object.assign(acting, { record, version });
  const { allowed_actions: allowed, status } = record;
  const buttons = [];
  if (allowed.includes('restart')) buttons.push(deedButton('restart', 'Restart', { kind: 'quiet' }));
  if (allowed.includes('stop')) buttons.push(deedButton('stop', 'Stop', { isBusy: status === 'stopping' }));
  if (allowed.includes('start') || status === 'starting') buttons.push(deedButton('start', status === 'failed' ? 'Try again' : 'Start', { kind: hasPrimary ? 'primary' : '', isBusy: status === 'starting' }));
  return [...buttons, headMenu(record)];
}

// A button of a deed, anywhere on the page: it asks first where it must, and shows its command in the line.
export function deedButton(kind, label, { kind: look = '', isBusy = false, key = kind } = {}) {
  const busy = isBusy || acting.doing === kind;
  return element('button', {
    class: `btn ${look}`, type: 'button', 'aria-busy': busy ? 'true' : null, 'aria-disabled': isAway() || acting.doing ? 'true' : null,
    'data-cmd': COMMANDS[kind](acting.record.name), 'data-key': key, on: { click: () => { if (!busy) doDeed(kind); } },
  }, !busy && DEED_ICONS[kind] && icon(DEED_ICONS[kind]), label);
}

const DEED_ICONS = { start: 'start', stop: 'stop' };

function headMenu(record) {
  const { name, allowed_actions: allowed, template, idle, status } = record;
  const isOff = isAway() || acting.doing !== null;
  const does = (label, cmd, act, more = {}) => element('li', {}, element('button', { type: 'button', 'aria-disabled': isOff ? 'true' : null, 'data-cmd': cmd, on: { click: () => { if (!isAway() && !acting.doing) act(); } }, ...more }, label));
  const items = [];
  if (allowed.includes('rename')) items.push(does('Rename', `svc ws rename ${quoted(name)} --name NAME`, rename));
  if (status === 'running' && idle.action !== 'none') items.push(does(`Keep from the idle policy for ${KEEP_HOURS} h`, COMMANDS.keep(name), () => doDeed('keep')));
  items.push(element('li', {}, element('a', { href: `/new?from=${encodeURIComponent(name)}`, 'data-cmd': anotherCommand(record) }, 'Make another like this')));
  if (template.newer_revision) items.push(upgradeItem(record, does));
  if (allowed.includes('delete')) items.push(element('li', {}, element('hr')), does('Delete', COMMANDS.delete(name), () => doDeed('delete'), { class: 'danger' }));
  return element('details', { class: 'menu' },
    element('summary', { class: 'btn icon quiet', 'aria-label': `More for ${name}`, 'data-key': 'more' }, icon('more')), element('ul', {}, ...items));
}

function upgradeItem({ name, allowed_actions: allowed, template }, does) {
  const label = `Upgrade to revision ${template.newer_revision}`;
  const cmd = `svc ws upgrade ${quoted(name)}`;
  if (allowed.includes('upgrade')) return does(label, cmd, upgrade);
  return element('li', {}, element('button', { type: 'button', 'aria-disabled': 'true', 'aria-describedby': 'upgrade-why', 'data-cmd': cmd },
    element('span', { class: 'stack' }, label, element('span', { class: 'muted tiny', id: 'upgrade-why' }, 'Stop it first'))));
}

const GIB_BYTES = 2 ** 30;
const bytesWord = bytes => bytes % GIB_BYTES === 0 ? `${bytes / GIB_BYTES}g` : String(bytes);

// The command that makes another one of the same size and variables.
export function anotherCommand({ name, template, resources, env, restart_on_boot: onBoot }) {
  const words = ['svc ws setup --template', quoted(template.name), '--name', quoted(`${name}-2`)];
  if (resources.cpu_limit !== null) words.push('--cpus', String(resources.cpu_limit));
  if (resources.memory_bytes !== null) words.push('--memory', bytesWord(resources.memory_bytes));
  if (resources.gpu_count) words.push('--gpu-count', String(resources.gpu_count), '--gpu-mode', resources.gpu_mode);
  for (const variable of env) words.push('--env', quoted(`${variable.name}=${variable.value}`));
  if (onBoot) words.push('--restart-on-boot');
  return words.join(' ');
}

// ---- doing ----

// Ask where it must be asked, do it, and show what came of it; resolves to whether it was done.
export async function doDeed(kind) {
  const { record } = acting;
  if (isAway() || acting.doing) return false;
  if (QUESTIONS[kind] && !await ask(QUESTIONS[kind](record.name))) return false;
  const { done, failed, send } = DEEDS[kind];
  answerBelowHead(null);
  acting.doing = kind;
  acting.redraw();
  try {
    const answered = await send(acted(record));
    acting.doing = null;
    find('[data-said]').textContent = `${record.name}: ${done}`;
    if (kind === 'delete') { location.assign('/workspaces'); return true; }
    acting.done(answered);
    acting.done(null);
    return true;
  } catch (error) {
    acting.doing = null;
    if (error.status !== 401) answerBelowHead(refused(error, { what: `${record.name} ${failed}.`, act: action => actThen(action), dismiss: () => answerBelowHead(null) }));
    acting.done(null);
    return false;
  } finally {
    acting.redraw();
  }
}

// The button of a refusal: what its hint says.
async function actThen(action) {
  const button = find('[data-answer] [data-key=act]');
  if (button.getAttribute('aria-busy') || isAway()) return;
  setAttribute(button, 'aria-busy', 'true');
  try {
    await call(action.method, action.path, { body: action.body });
    answerBelowHead(null);
    find('[data-said]').textContent = `${action.label}: begun`;
  } catch (error) {
    answerBelowHead(refused(error, { what: `${acting.record.name}:`, act: actThen, dismiss: () => answerBelowHead(null) }));
  }
  acting.done(null);
}

// What answers to a press, below the tabs: a notice, or null for none.
export function answerBelowHead(notice) {
  const box = find('[data-answer]');
  box.replaceChildren(...(notice ? [notice] : []));
  box.hidden = notice === null;
  if (notice) { notice.focus(); notice.scrollIntoView({ block: 'nearest' }); }
}

// ---- what the menu opens ----

async function rename() {
  const { record, version } = acting;
  const input = element('input', { class: 'input mono', id: 'new-name', 'data-field': 'name', value: record.name, required: true, autocomplete: 'off', spellcheck: 'false', maxlength: '63' });
  const line = () => `svc ws rename ${quoted(record.name)} --name ${quoted(input.value || 'NAME')}`;
  const renamed = await formDialog({
    title: `Rename ${record.name}`, content: [labelled('New name', input, { help: 'a-z, 0-9 and -. What runs in it runs on.' })],
    deed: 'Rename', line, focus: input, failed: 'It was not renamed.',
    submit: async () => { acting.done(await call('POST', `${acted(record)}/rename`, { body: { name: input.value }, ifMatch: version })); },
  });
  if (renamed) { toast('Renamed'); acting.done(null); }
}

async function upgrade() {
  const { record, version } = acting;
  const upgraded = await upgradeDialog(record, { version, path: acted(record), refuse: error => answerBelowHead(refused(error, { what: `${record.name} cannot be upgraded now.`, act: actThen, dismiss: () => answerBelowHead(null) })) });
  if (upgraded) { find('[data-said]').textContent = `${record.name}: Upgraded`; acting.done(null); }
}
