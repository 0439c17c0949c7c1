// The host: what root's commands reported of it, and how old that is; what is to be done is done there.
import { call, outcomes } from '../frame/api.js';
import { element, find, findAll, replace } from '../frame/dom.js';
import { hostName, isOffline, skeleton } from '../frame/frame.js';
import { hostDialog } from '../parts/dialogs.js';
import {
  backupsPanel,
  doctorPanel,
  failedPanel,
  licencePanel,
  servicePanel,
  setsPanel,
  updatesPanel,
} from './host_panels.js';
import { setCommand } from '../frame/foot.js';
import { withQuery } from './commands.js';
import { startAdmin } from './page.js';
import { refreshSoon } from '../screen/page.js';

const LIMIT = 200, EVERY_MS = 30_000;

// Panels: where each stands, what it is read from, and what shows that.
const PANELS = {
  doctor: { side: 'main', title: 'Doctor', read: how => reportOf('/api/admin/host', how), show: doctorPanel },
  sets: { side: 'main', title: 'Recovery sets', read: how => reportOf('/api/admin/recovery-sets', how),
    show: setsPanel },
  service: { side: 'aside', title: 'Service', read: how => Promise.all([health(how), call('GET', '/api/version', how)]),
    show: parts => servicePanel(...parts) },
  licence: { side: 'aside', title: 'Licence', read: how => call('GET', '/api/admin/license', how), show: licencePanel },
  updates: { side: 'aside', title: 'Updates', read: how => call('GET', '/api/admin/updates', how), show: updatesPanel },
  backups: { side: 'aside', title: 'Backups', read: how => reportOf('/api/admin/backups', how), show: backupsPanel },
};

const known = {};
const renderedAs = {}; // panel -> what it shows

// All items of a report, and the report itself.
async function reportOf(path, how) {
  const items = [];
  let report = null;
  for (let offset = 0; offset !== null;) {
    const page = await call('GET', withQuery(path, { limit: String(LIMIT), offset: String(offset) }), how);
    items.push(...page.items);
    report = page.report;
    offset = page.next_offset ?? null;
  }
  return { report, items };
}

// A service that is not well answers 503, with what is wrong as its content.
async function health(how) {
  try {
    return await call('GET', '/api/health', how);
  } catch (error) {
    if (error.status !== 503) throw error;
    return { status: 'degraded', db: '', helper: '', license: '', error };
  }
}

async function read(options) {
  const names = Object.keys(PANELS);
  const parts = await outcomes(names.map(name => PANELS[name].read(options)));
  const [first] = parts;
  if (parts.every(part => part.error) || first.error?.status === 401 || first.error?.status === 403) throw first.error;
  names.forEach((name, number) => {
    known[name] = parts[number];
  });
}

function show() {
  if (!find('[data-side]')) {
    find('#screen').replaceChildren(
      element('div.cols.side-r', element('div.stack-4', { 'data-side': 'main' }),
        element('div.stack-4', { 'data-side': 'aside' }))
    );
  }
  for (const [name, { side, title, show: panelOf }] of Object.entries(PANELS)) {
    const { value, error } = known[name];
    const key = JSON.stringify(error ? [error.message, error.code] : value,
      (key, part) => (key === 'age_s' ? null : part));
    if (renderedAs[name] === key) continue;
    renderedAs[name] = key;
    showPanel(find(`[data-side="${side}"]`), name, error ? failedPanel(name, title, error) : panelOf(value));
  }
  setCommand(['admin doctor']);
}

// A panel stands where its kind stands, with what was open in it still open.
function showPanel(place, name, fresh) {
  const box = find(`[data-box="${name}"]`, place)
    ?? place.appendChild(element('div.stack', { 'data-box': name }));
  const open = new Set(findAll('details[open]', box).map(node => node.dataset.key));
  replace(box, fresh);
  for (const node of findAll('details', box)) node.open = open.has(node.dataset.key);
}

function checkAgain() {
  hostDialog({
    title: 'Check this host again',
    commands: [['admin doctor'], ['admin report']],
    paragraphs: [
      'The doctor runs on the host, as root: what it looks at, the service may not see. Its findings are here '
      + 'a moment later. `svc admin report` renews all reports; as a line of cron it keeps them fresh:',
    ],
    extra: [element('p', element('code', '23 * * * * root /usr/local/bin/svc admin report'))],
  });
}

function skeletonNow() {
  const box = rows =>
    element('section.panel', { 'aria-hidden': true }, element('header', skeleton('2')),
      element('div.body.stack-4', Array.from({ length: rows }, () => element('div', skeleton('4')))));
  return element('div.cols.side-r', { 'aria-busy': true, 'aria-label': 'Loading the host', role: 'group' },
    element('div.stack-4', box(6), box(2)), element('div.stack-4', box(5), box(5), box(4), box(4)));
}

setInterval(() => {
  if (!document.hidden && !isOffline() && find('[data-side]')) refreshSoon();
}, EVERY_MS);
find('[data-key=again]').addEventListener('click', checkAgain);
find('.lede').replaceChildren(element('span.mono', hostName()));
await startAdmin({ read, show, loading: skeletonNow, failed: 'The host could not be read.' });
