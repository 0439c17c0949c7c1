// What the palette finds: screens, workspaces, templates, images, and what can be done with them as they are.
import { chooseTheme, theme } from '../frame/choices.js';
import { find, findAll } from '../frame/dom.js';
import { PLACES } from '../frame/keys.js';
import { copyCommand } from '../frame/foot.js';
import { duration } from '../frame/format.js';
import { TERMINAL_OPEN, WORKSPACE_SETUP } from '../generated/actions.js';
import { reason } from '../parts/reasons.js';
import { KEEP_HOURS, commandOf, editCommand } from '../parts/workspace_actions.js';

export const GROUPS = ['Workspaces', 'Actions', 'Templates', 'Images', 'Screens'];

// An entry: where it leads (`path`) or what it does (`run`, `action` of a workspace), and the command of the same.
export function entriesOf({ workspaces, templates, images }) {
  const runs = workspaces.filter(({ status }) => status === 'running');
  const inOrder = [...runs, ...workspaces.filter(workspace => !runs.includes(workspace))];
  return [
    ...inOrder.map(workspaceEntry),
    fresh,
    ...inOrder.flatMap(actionsOf),
    ...ofThisBrowser(),
    ...templates.map(template => templateEntry(template, templates)),
    ...templates.flatMap(newFrom),
    ...images.flatMap(imageEntry),
    ...screens(),
  ];
}

const fresh = { key: '/new', group: 'Actions', title: 'New workspace', path: '/new', cmd: [WORKSPACE_SETUP],
  keys: 'c' };

// Those that have all words; what begins with the first word comes first in its group.
export function matching(entries, text) {
  const texts = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries.filter(({ group, title, sub = '' }) => {
    const all = `${group} ${title} ${sub}`.toLowerCase();
    return texts.every(text => all.includes(text));
  });
  const isFirst = ({ title }) => texts.length > 0 && title.toLowerCase().startsWith(texts[0]);
  return GROUPS.map(group => {
    const entriesHere = found.filter(entry => entry.group === group);
    return { group, entries: [...entriesHere.filter(isFirst), ...entriesHere.filter(entry => !isFirst(entry))] };
  });
}

const pathTo = (name, more = '') => `/workspaces/${encodeURIComponent(name)}${more}`;

// ---- workspaces ----

function workspaceEntry({ name, status, status_reason: code, exit_code: exit, started_at: at, gpus }) {
  const text = [status === 'running' && at ? `running ${duration((Date.now() - Date.parse(at)) / 1000)}` : status];
  if (status === 'running' && gpus.length) text.push(`${gpus.length} ${gpus.length === 1 ? 'GPU' : 'GPUs'}`);
  if (['stopped', 'failed'].includes(status)) text.push(reason(code, exit));
  return { key: `ws ${name}`, group: 'Workspaces', title: name, isName: true, sub: text.filter(Boolean).join(', '),
    path: pathTo(name), cmd: ['ws get', name] };
}

/** @param {Api.Workspace} workspace */
function actionsOf(workspace) {
  const { name, status, allowed_actions: allowed, idle } = workspace;
  const action = (kind, title, sub = '') => ({ key: `${kind} ${name}`, group: 'Actions', title, sub, action: kind,
    workspace, cmd: commandOf(kind, name) });
  const link = (kind, title, more, cmd) => ({ key: `${kind} ${name}`, group: 'Actions', title, path: pathTo(name, more),
    cmd });
  return [
    allowed.includes('exec')
    && link('terminal', `Open a terminal in ${name}`, '/terminal', [TERMINAL_OPEN, name]),
    allowed.includes('start') && action('start', `Start ${name}`),
    allowed.includes('stop') && action('stop', `Stop ${name}`, 'asks first'),
    allowed.includes('restart') && action('restart', `Restart ${name}`, 'asks first'),
    status === 'running' && idle?.since && idle.action !== 'none'
    && action('keep', `Keep ${name} for ${KEEP_HOURS} hours`),
    allowed.includes('logs')
    && link('logs', `Logs of ${name}`, '/logs', ['ws logs', name, status === 'running' && '--follow']),
    link('settings', `Settings of ${name}`, '/settings', editCommand(name)),
  ].filter(Boolean);
}

// ---- templates and images ----

// A name may be that of two templates, yours and everybody's: then the id says which.
const refOf = ({ id, name }, templates) => templates.filter(other => other.name === name).length > 1 ? id : name;

/** @param {Api.Template} template */
function templateEntry(template, templates) {
  const { id, name, scope, revision, status } = template;
  const ref = refOf(template, templates);
  return {
    key: `template ${id}`,
    group: 'Templates',
    title: name,
    isName: true,
    sub: `${scope === 'global' ? 'global' : 'yours'}, revision ${revision}${
      status === 'enabled' ? '' : ', cannot be used yet'
    }`,
    path: `/templates/${encodeURIComponent(ref)}`,
    cmd: ['template get', ref],
  };
}

/** @param {Api.Template} template */
function newFrom(template, _, templates) {
  if (template.status !== 'enabled') return [];
  const ref = refOf(template, templates);
  return [{
    key: `new ${template.id}`,
    group: 'Actions',
    title: `New workspace from ${template.name}`,
    isLater: true,
    path: `/new?template=${encodeURIComponent(ref)}`,
    cmd: [WORKSPACE_SETUP, ref],
  }];
}

function imageEntry({ ref, status, template }) {
  if (!template) return [];
  return [{ key: `image ${template.id}`, group: 'Images', title: ref, isName: true,
    sub: `of ${template.name}, ${status}`, path: '/images', cmd: ['image status', template.name] }];
}

// ---- screens, and what is of this browser alone ----

const keysOf = path => Object.entries(PLACES).filter(([, place]) => place === path).map(([key]) => `g ${key}`)[0];

function screens() {
  const links = findAll('.side .nav a[href]').filter(link => !link.closest('[hidden]'));
  const entries = links.map(link => ({ key: link.pathname, group: 'Screens', title: find('.t', link).textContent,
    path: link.pathname, cmd: link.dataset.cmd, keys: keysOf(link.pathname) })
  );
  return [
    ...entries,
    { key: '/settings/tokens', group: 'Screens', title: 'Settings, API tokens', path: '/settings/tokens',
      cmd: ['token list'] },
    { key: '/settings/sessions', group: 'Screens', title: 'Settings, sessions', path: '/settings/sessions',
      cmd: ['api', 'GET', '/api/auth/sessions'] },
  ];
}

const THEMES = { system: 'Colours as the system', light: 'Light colours', dark: 'Dark colours' };

function ofThisBrowser() {
  const colours = Object.entries(THEMES).filter(([name]) => name !== theme());
  return [
    ...colours.map(([name, title]) => ({ key: `theme ${name}`, group: 'Actions', title, sub: 'switch theme',
      isLater: true, run: () => chooseTheme(name) })
    ),
    { key: 'keys', group: 'Actions', title: 'Keys', sub: 'shortcuts, help', isLater: true, keys: '?',
      run: () => find('dialog#keys').showModal() },
    { key: 'copy', group: 'Actions', title: "Copy this screen's command", isLater: true, keys: 'y',
      cmd: find('[data-command]').textContent, run: copyCommand },
    { key: 'sign-out', group: 'Actions', title: 'Sign out', isLater: true, run: () => find('[data-sign-out]').click() },
  ];
}
