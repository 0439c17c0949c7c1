// The GPUs of the host: who holds which and since when, what is used outside svc, and what was lost.
import { call } from '../frame/api.js';
import { startAdmin } from './page.js';
import { refreshSoon, perform } from '../screen/page.js';
import { code, command, element, find, findAll, panel, replace, stateMark, empty } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { gpuRow, lostNotice, slotOfAdmin } from './gpu_row.js';
import { askToStop } from './stopping.js';
import { setCommand } from '../frame/foot.js';
import { apiCommand, withQuery } from './commands.js';
import { showRows } from '../parts/rows.js';
import { skeletonOf, tableOf } from '../parts/tables.js';
import { counted, time, commaList } from '../frame/format.js';
import { modelsOf } from '../parts/gpu_bank.js';

const HEADS = ['GPU', 'State', 'Who', 'Since', 'Mode', ['Busy', 'w-bar'], 'Memory', ''];
const HISTORY = withQuery('/api/events/history', { all: 'true', type: 'gpu.lost,gpu.restored', limit: '20' });
const EVERY_MS = 10_000;

const known = { gpus: [], hardware: null, history: [], total: 0 };
const stopping = new Set();

async function read(options) {
  const [capacity, hardware, history] = await Promise.all([
    call('GET', '/api/workspaces/capacity', options),
    known.hardware ?? call('GET', '/api/servers/hardware', options),
    call('GET', HISTORY, options),
  ]);
  Object.assign(known, { gpus: capacity.gpus, hardware, history: history.items, total: history.total });
}

function show() {
  const { provider, driver, max_cuda: cuda } = known.hardware;
  find('.lede').textContent = commaList(modelsOf(known.gpus), driver && `driver ${driver}`,
    cuda && `CUDA up to ${cuda}`);
  if (known.gpus.length === 0) {
    showNone(provider);
    setCommand(['servers hardware']);
    return;
  }
  if (!find('#screen table')) find('#screen').replaceChildren(...frame());
  replace(find('[data-lost]'),
    ...known.gpus.filter(gpu => gpu.state === 'lost').map(gpu => lostNotice(gpu, context())));
  replace(find('[data-bank]'), ...known.gpus.map(slotOfAdmin));
  find('[data-count]').textContent = summary();
  showRows(find('#screen tbody'),
    known.gpus.map(gpu => ({ id: gpu.uuid,
      key: JSON.stringify([gpu, isOffline(), gpu.holders.map(holder => stopping.has(holder.workspace_id))]),
      build: () => gpuRow(gpu, context()) })
    ));
  replace(find('[data-history]'), ...historyOf());
  setCommand([['ws capacity'], ['servers hardware']]);
}

const context = () => ({ isOffline: isOffline(), stopping, stop });

function frame() {
  const swatch = (kind, text) => element('span', { class: `sw ${kind}` }, text);
  return [
    element('div.stack-4', { 'data-lost': true }),
    panel('map-h', 'Who holds which', [element('span.muted.small.num', { 'data-count': true }),
      element('div.actions.legend-row.tiny.muted', swatch('', 'leased'), swatch('hatch', 'outside svc'),
        swatch('free', 'free'))],
      element('div.body',
        element('div.bank-box', element('ul.bank', { 'aria-label': 'GPUs of this host', 'data-bank': true })))),
    element('section.panel', { 'aria-label': 'GPUs, one by one' }, tableOf('GPUs', HEADS),
      element('footer',
        element('span.muted.small',
          "You see that workspaces exist and can stop or delete them. What is inside is their owners' alone. "
            + 'What runs outside svc belongs to Linux users of the host; svc leaves it alone.'))),
    panel('lost-h', 'Lost and back', element('span.muted.small', 'the last 30 days'),
      element('div.body.stack-2', { 'data-history': true })),
  ];
}

function summary() {
  const count = (...states) => known.gpus.filter(gpu => states.includes(gpu.state)).length;
  const text = [[count('leased', 'shared'), 'leased'], [count('busy'), 'in use outside svc'], [count('lost'), 'lost'], [
    count('unusable'),
    'unusable',
  ], [count('free'), 'free']];
  return text.filter(([number, label]) => number || label === 'free').map(([number, label]) => `${number} ${label}`)
    .join(
      ', '
    );
}

function showNone(provider) {
  const cdi = known.hardware.cdi;
  find('#screen').replaceChildren(
    empty('This host has no GPUs',
      element('p',
        provider === 'none' ? 'The service is set to look for none (SVC_GPU_PROVIDER=none).' : 'The driver lists none.',
        cdi?.problem && ` ${cdi.problem}.`), command(cdi?.remedy || ['admin doctor']))
  );
}

// What events are kept of GPUs that the driver had no more: whose they are is said, and not which for others.
function historyOf() {
  if (known.history.length === 0) return [element('p.muted.small', 'No workspace has lost a GPU.')];
  const text = { 'gpu.lost': ' lost a GPU', 'gpu.restored': ' has its GPUs again' };
  const rows = known.history.map(event =>
    element('p.small',
      stateMark(event.type === 'gpu.lost' ? 'failed' : 'ok', event.type === 'gpu.lost' ? 'Lost' : 'Back'), ' ',
      element('span.mono.ref', event.subject.name), event.owner && [' of ', element('span.name.ref', event.owner)],
      text[event.type] ?? ` ${event.type}`, ', ', time(event.ts, 'ago'))
  );
  const rest = known.total - known.history.length;
  return [...rows.flat(), rest > 0
    && element('p.muted.small', `${counted(rest, 'event')} before: `, code(
      apiCommand('GET', withQuery('/api/events/history', { all: 'true', type: 'gpu.lost,gpu.restored', offset: '20' }))
    ))].filter(
      Boolean
    );
}

async function stop(holder) {
  const { owner, workspace, workspace_id: id } = holder;
  if (isOffline() || stopping.has(id)) return;
  if (!await askToStop({ id, name: workspace, owner,
    gpus: known.gpus.filter(gpu => gpu.holders.some(other => other.workspace_id === id)) })) return;
  stopping.add(id);
  show();
  await perform(null, { what: `${workspace} was not stopped.`, done: `${workspace}: Stopped` },
    () => call('POST', withQuery(`/api/workspaces/${encodeURIComponent(id)}/stop`, { owner }), { body: {} }));
  stopping.delete(id);
  show();
}

const EVENTS = ['gpu.', 'capacity.', 'workspace.'];

setInterval(() => {
  if (!document.hidden && !isOffline() && findAll('#screen table').length) refreshSoon();
}, EVERY_MS);
await startAdmin({ read, show,
  loading: () => skeletonOf('GPUs', HEADS, [['3'], ['2'], ['3'], ['1'], ['1'], ['3'], ['1'], []], 8),
  failed: 'The GPUs could not be read.', wants: event => EVENTS.some(start => event.type.startsWith(start)) });
