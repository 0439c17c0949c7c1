// What the head of a workspace's pages does: start, stop, restart, and the menu.
import { element, icon } from '../frame/dom.js';
import { ask } from '../frame/asking.js';
import { isOffline } from '../frame/frame.js';
import { toast } from '../frame/foot.js';
import { announce, answer, answerRefusal, refused } from '../frame/notices.js';
import { WORKSPACE_RENAME, WORKSPACE_SETUP, WORKSPACE_UPGRADE } from '../generated/actions.js';
import { shText, shellText } from '../parts/shell_text.js';
import { menuOf } from '../parts/menu.js';
import { ACTIONS, KEEP_HOURS, QUESTIONS, commandOf } from '../parts/workspace_actions.js';
import { perform } from '../screen/page.js';

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
  if (allowed.includes('restart')) buttons.push(actionButton('restart', { kind: 'quiet' }));
  if (allowed.includes('stop')) buttons.push(actionButton('stop', { isBusy: status === 'stopping' }));
  if (allowed.includes('start') || status === 'starting')
    buttons.push(
      actionButton('start', { label: status === 'failed' ? 'Try again' : ACTIONS.start.label,
        kind: hasPrimary ? 'primary' : '', isBusy: status === 'starting' })
    );
  return [...buttons, headMenu(record)];
}

// A button of an action, anywhere on the page: it asks first where it must, and shows its command at the foot.
export function actionButton(kind, { label = ACTIONS[kind].label, kind: style = '', isBusy = false, key = kind } = {}) {
  const busy = isBusy || acting.doing === kind;
  return element('button', { class: `btn ${style}`, 'aria-busy': busy, 'aria-disabled': isOff(),
    cmd: commandOf(kind, acting.record.name), key, click: () => {
      if (!busy) doAction(kind);
    } }, !busy && ['start', 'stop'].includes(kind) && icon(kind), label);
}

const isOff = () => isOffline() || acting.doing !== null;

/** @param {Api.Workspace} record */
function headMenu(record) {
  const { name, allowed_actions: allowed, template, idle, status } = record;
  const can = kind => allowed.includes(kind);
  const does = (label, cmd, act, kind = null) => ({ label, cmd, class: kind, press: () => !isOff() && act() });
  const newer = template.newer_revision
    ? `revision ${template.newer_revision}`
    : record.newer_image && 'the newer image';
  return menuOf(name, [
    can('rename') && does(WORKSPACE_RENAME.label, [WORKSPACE_RENAME, name], rename),
    status === 'running' && idle.action !== 'none'
    && does(`Keep from the idle policy for ${KEEP_HOURS} h`, commandOf('keep', name), () => doAction('keep')),
    { label: 'Make another like this', cmd: anotherCommand(record), href: `/new?from=${encodeURIComponent(name)}` },
    Boolean(newer)
    && does(can('upgrade') ? `Upgrade to ${newer}` : `What ${newer} changes`, [WORKSPACE_UPGRADE, name,
      !can('upgrade') && '--dry-run'], openUpgrade),
    ...(can('delete')
      ? [null, does(ACTIONS.delete.label, commandOf('delete', name), () => doAction('delete'), 'danger')]
      : []),
  ], { isOff: isOff(), kind: '' });
}

const GIB_BYTES = 2 ** 30;
const bytesArgument = bytes => bytes % GIB_BYTES === 0 ? `${bytes / GIB_BYTES}g` : String(bytes);

// The command that makes another one of the same size and variables.
export function anotherCommand({ name, template, resources, env, network, command, restart_on_boot: onBoot }) {
  const { cpu_limit: cpus, memory_bytes: memory, gpu_count: gpus, gpu_mode: mode } = resources;
  return [WORKSPACE_SETUP, template.name, `${name}-2`, ['--cpus', cpus], ['--memory', memory && bytesArgument(memory)],
    ['--gpu-count', gpus || null], ['--gpu-mode', gpus ? mode : null],
    ...env.map(variable => ['--env', `${variable.name}=${variable.value}`]), ['--network', network], ['--command',
    command && (shText(command) ?? `exec ${shellText(command)}`)], onBoot && '--restart-on-boot'];
}

// ---- doing ----

// Ask where it must be asked, do it, and show what came of it; resolves to whether it was done.
export async function doAction(kind) {
  const { record } = acting;
  if (isOffline() || acting.doing) return false;
  if (QUESTIONS[kind] && !await ask(QUESTIONS[kind](record))) return false;
  const { done, send } = ACTIONS[kind];
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
      const notice = refused(error, { what: `${record.name} ${ACTIONS[kind].failed}.`, act: actThen, dismiss: () =>
        answer(null) });
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
  await nextStep(action, { name: acting.record.name, openUpgrade, perform, act: actThen });
}

// Any other change: `request` sends it, `failed` says what did not come about; resolves to whether it did.
export async function change(request, { failed, done = '', button = null, refuse = null }) {
  if (acting.doing) return false;
  const came = await perform(button, { what: failed, done, act: actThen, refuse },
    () => request(acted(acting.record), acting.version));
  if (came?.[0]?.allowed_actions) acting.done(came[0]);
  return came !== null;
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
