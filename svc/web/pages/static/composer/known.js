// What the composer knows, and what the person has chosen of it.
import { all, call } from '../frame/api.js';
import { isRead } from '../frame/frame.js';
import { byName } from '../frame/format.js';

// `levels` are the recommendations for the chosen template, `loads` what a pull of each would load.
export const known = { templates: [], usable: [], images: null, capacity: null, names: new Set(), levels: new Map(),
  loads: new Map(), check: null, wrong: new Map(), isRead: false };
// `isTouched`: sizes of the person's own; `isNamed`: a name; `isSent`: the form was sent once.
export const chosen = { template: null, level: null, isTouched: false, isNamed: false, isSent: false };

export async function readAll() {
  const [templates, capacity, workspaces, setups] = await Promise.all([
    all('/api/templates?sort=name'),
    call('GET', '/api/workspaces/capacity'),
    all('/api/workspaces?sort=name'),
    readSetups(),
  ]);
  known.templates = templates;
  known.usable = inOrder(templates.filter(template => template.status === 'enabled'), workspaces);
  known.capacity = capacity;
  known.names = namesIn(workspaces);
  known.isRead = true;
  return { workspaces, setups };
}

// Set-ups that go on without their page; none where they cannot be read.
export const readSetups = () =>
  call('GET', '/api/operations?kind=setup&status=queued,running', { background: true }).then(page => page.items,
    () => []);

const namesIn = workspaces => new Set(workspaces.map(workspace => workspace.name));

// Those of one's workspaces come first, the most used before the others.
function inOrder(templates, workspaces) {
  const uses = new Map();
  for (const { template } of workspaces) uses.set(template.id, (uses.get(template.id) ?? 0) + 1);
  return templates.sort((a, b) => (uses.get(b.id) ?? 0) - (uses.get(a.id) ?? 0) || byName(a.name, b.name));
}

// What is left, and the names that are taken. Returns whether there is less or more now.
export async function readAgain({ names }) {
  const options = { background: true };
  const [capacity, workspaces] = await Promise.all([call('GET', '/api/workspaces/capacity', options),
    names ? all('/api/workspaces?sort=name', options) : null]);
  const isOther = JSON.stringify(capacity) !== JSON.stringify(known.capacity);
  known.capacity = capacity;
  if (workspaces) known.names = namesIn(workspaces);
  isRead();
  return isOther;
}

export async function readImages() {
  const items = await all('/api/images', { background: true });
  known.images = new Map(items.filter(item => item.template).map(item => [item.template.id, item]));
  for (const [id, image] of known.images) if (image.status === 'ready') known.loads.delete(id);
}

/** @param {Api.Template} template */
export const loadsOf = template => known.loads.get(template?.id)?.found ?? null;

// What the pull of the chosen template's image would load; a registry is asked, and once.
export async function askLoads(show) {
  const { template } = chosen;
  const status = known.images?.get(template?.id)?.status;
  if (!template || !['missing', 'failed'].includes(status) || known.loads.has(template.id)) return;
  known.loads.set(template.id, { isAsking: true });
  show();
  try {
    known.loads.set(template.id, {
      found: await call('GET', `/api/templates/${encodeURIComponent(template.id)}/image/preflight`, {
        background: true,
      }),
    });
  } catch (error) {
    known.loads.set(template.id, { error });
  }
  show();
}
