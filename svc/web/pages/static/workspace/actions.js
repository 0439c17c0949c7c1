// What the head of a workspace's pages does: start, stop, restart, and the menu.
import { element, icon } from '../frame/dom.js';
import { ask } from '../frame/asking.js';
import { isOffline } from '../frame/frame.js';
import { toast } from '../frame/line.js';
import { announce, answer, answerRefusal, refused } from '../frame/notices.js';
import { quoted } from '../frame/format.js';
import { lineForSh, lineOfCommand } from '../shared/own_command.js';
import { COMMANDS, ACTIONS, KEEP_HOURS, QUESTIONS } from '../shared/workspace_actions.js';

const acting = {
  /** @type {Api.Workspace} */
  record: null,
  version: null,
  doing: null,
  /** @type {(record: Api.Workspace | null) => void} */
  done: () => {},
  redraw: () => {},
  /** @type {(kind: string, error: any, notice: HTMLElement) => void} */
  refused: () => {},
};

// `listener` gets the record after an action, or null where it must be read anew.
export const onDone = (listener, redraw) => {
  acting.done = listener;
  acting.redraw = redraw;
};

// `listener` gets the kind of an action, its refusal and the notice of it, which it may add to.
export const onRefused = listener => {
  acting.refused = listener;
};

/** @param {Api.Workspace} record */
const acted = record => `/api/workspaces/${encodeURIComponent(record.id)}`;

// ---- the buttons ----

// The record that the buttons are for, and its version.
/** @param {Api.Workspace} record */
export function actOn(record, version) {
  Object.assign(acting, { record, version });
}

export const isDoing = () => acting.doing;

export function headActions({ hasPrimary }) {
  const { record } = acting;
  const { allowed_actions: allowed, status } = record;
  const buttons = [];
  if (allowed.includes('restart')) buttons.push(actionButton('restart', 'Restart', { kind: 'quiet' }));
  if (allowed.includes('stop')) buttons.push(actionButton('stop', 'Stop', { isBusy: status === 'stopping' }));
  if (allowed.includes('start') || status === 'starting')
    buttons.push(
      actionButton('start', status === 'failed' ? 'Try again' : 'Start', { kind: hasPrimary ? 'primary' : '',
        isBusy: status === 'starting' })
    );
  return [...buttons, headMenu(record)];
}

// A button of an action, anywhere on the page: it asks first where it must, and shows its command in the line.
export function actionButton(kind, label, { kind: style = '', isBusy = false, key = kind } = {}) {
  const busy = isBusy || acting.doing === kind;
  return element('button', {
    class: `btn ${style}`,
    'aria-busy': busy ? 'true' : null,
    'aria-disabled': isOffline() || acting.doing ? 'true' : null,
    'data-cmd': COMMANDS[kind](acting.record.name),
    'data-key': key,
    on: { click: () => {
      if (!busy) doAction(kind);
    } },
  }, !busy && ACTION_ICONS[kind] && icon(ACTION_ICONS[kind]), label);
}

const ACTION_ICONS = { start: 'start', stop: 'stop' };

/** @param {Api.Workspace} record */
function headMenu(record) {
  const { name, allowed_actions: allowed, template, idle, status } = record;
  const isOff = isOffline() || acting.doing !== null;
  const does = (label, cmd, act, more = {}) =>
    element('li', element('button', { 'aria-disabled': isOff ? 'true' : null, 'data-cmd': cmd, on: { click: () => {
      if (!isOffline() && !acting.doing) act();
    } }, ...more }, label));
  const items = [];
  if (allowed.includes('rename')) items.push(does('Rename', `svc ws rename ${quoted(name)} --name NAME`, rename));
  if (status === 'running' && idle.action !== 'none')
    items.push(does(`Keep from the idle policy for ${KEEP_HOURS} h`, COMMANDS.keep(name), () => doAction('keep')));
  items.push(
    element('li',
      element('a', { href: `/new?from=${encodeURIComponent(name)}`, 'data-cmd': anotherCommand(record) },
        'Make another like this'))
  );
  const newer = template.newer_revision
    ? `revision ${template.newer_revision}`
    : record.newer_image && 'the newer image';
  if (newer)
    items.push(
      does(allowed.includes('upgrade') ? `Upgrade to ${newer}` : `What ${newer} changes`,
        `svc ws upgrade ${quoted(name)}${allowed.includes('upgrade') ? '' : ' --dry-run'}`, openUpgrade)
    );
  if (allowed.includes('delete'))
    items.push(element('li', element('hr')),
      does('Delete', COMMANDS.delete(name), () => doAction('delete'), { class: 'danger' }));
  return element('details.menu',
    element('summary.btn.icon.quiet', { 'aria-label': `More for ${name}`, 'data-key': 'more' }, icon('more')),
    element('ul', ...items));
}

const GIB_BYTES = 2 ** 30;
const bytesArgument = bytes => bytes % GIB_BYTES === 0 ? `${bytes / GIB_BYTES}g` : String(bytes);

// The command that makes another one of the same size and variables.
export function anotherCommand({ name, template, resources, env, network, command, restart_on_boot: onBoot }) {
  const text = ['svc ws setup --template', quoted(template.name), '--name', quoted(`${name}-2`)];
  if (resources.cpu_limit !== null) text.push('--cpus', String(resources.cpu_limit));
  if (resources.memory_bytes !== null) text.push('--memory', bytesArgument(resources.memory_bytes));
  if (resources.gpu_count) text.push('--gpu-count', String(resources.gpu_count), '--gpu-mode', resources.gpu_mode);
  for (const variable of env) text.push('--env', quoted(`${variable.name}=${variable.value}`));
  if (network) text.push('--network', quoted(network));
  if (command) text.push('--command', quoted(lineForSh(command) ?? `exec ${lineOfCommand(command)}`));
  if (onBoot) text.push('--restart-on-boot');
  return text.join(' ');
}

// ---- doing ----

// Ask where it must be asked, do it, and show what came of it; resolves to whether it was done.
export async function doAction(kind) {
  const { record } = acting;
  if (isOffline() || acting.doing) return false;
  if (QUESTIONS[kind] && !await ask(QUESTIONS[kind](record))) return false;
  const { done, failed, send } = ACTIONS[kind];
  answer(null);
  acting.doing = kind;
  acting.redraw();
  try {
    const answered = await send(acted(record));
    acting.doing = null;
    announce(`${record.name}: ${done}`);
    if (kind === 'delete') {
      location.assign('/workspaces');
      return true;
    }
    acting.done(answered);
    acting.done(null);
    if (answered?.launchers_failed?.length) answer((await import('./failed_apps.js')).failedApps(answered));
    return true;
  } catch (error) {
    acting.doing = null;
    if (error.status !== 401) {
      const notice = refused(error, { what: `${record.name} ${failed}.`, act: actThen, dismiss: () => answer(null) });
      acting.refused(kind, error, notice);
      answer(notice);
    }
    acting.done(null);
    return false;
  } finally {
    acting.redraw();
  }
}

// The button of a refusal: what its hint says.
async function actThen(action) {
  const { nextStep } = await import('./next_step.js');
  await nextStep(action, { name: acting.record.name, openUpgrade, act: actThen, done: acting.done });
}

// Any other change: `request` sends it, `failed` says what did not come about; resolves to whether it did.
export async function change(request, { failed, done = '' }) {
  if (isOffline() || acting.doing) return false;
  answer(null);
  try {
    const answered = await request(acted(acting.record), acting.version);
    if (done) announce(done);
    if (answered?.allowed_actions) acting.done(answered);
    acting.done(null);
    return true;
  } catch (error) {
    if (error.status !== 401) answerRefusal(error, failed, actThen);
    acting.done(null);
    return false;
  }
}

// ---- what the menu opens ----

async function rename() {
  const { record, version } = acting;
  const { renameDialog } = await import('./menu_dialogs.js');
  const renamed = await renameDialog(record, { version, path: acted(record) });
  if (!renamed) return;
  toast('Renamed');
  acting.done(renamed);
  acting.done(null);
}

// What the newest revision of its template would change, and the upgrade itself.
export async function openUpgrade() {
  const { record, version } = acting;
  const { upgradeDialog } = await import('./menu_dialogs.js');
  const refuse = error => answerRefusal(error, `${record.name} cannot be upgraded now.`, actThen);
  if (!await upgradeDialog(record, { version, path: acted(record), refuse })) return;
  announce(`${record.name}: Upgraded`);
  acting.done(null);
}
