// Keys. Ctrl K opens the palette from everywhere; single keys are off in fields, in dialogs and by the person's choice.
// What keeps all keys for itself, such as a terminal, is marked with data-own-keys.
import { hasSingleKeys } from './choices.js';
import { closestTo, find, findAll } from './dom.js';
import { copyCommand, toast } from './foot.js';

export const PLACES = { w: '/workspaces', t: '/templates', i: '/images', f: '/files', a: '/activity', s: '/settings' };
const SEQUENCE_MS = 1500; // from g to its letter

let wentAt = -Infinity;

// `loadPalette` resolves to the palette.
export function startKeys(loadPalette) {
  const openPalette = () => togglePalette(loadPalette);
  document.addEventListener('keydown', event => {
    if (event.defaultPrevented || event.isComposing || closestTo(event, '[data-own-keys]')) return;
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      openPalette();
    } else if (!event.ctrlKey && !event.metaKey && !event.altKey && hasSingleKeys() && !find('dialog[open]')
      && !isField(event.target)) {
      press(event);
    }
  });
  document.addEventListener('click', event => {
    if (closestTo(event, '[data-palette]')) openPalette();
  });
}

const isField = node => node.matches?.('input, textarea, select, [contenteditable]');

function press(event) {
  const { key } = event;
  const hasGone = event.timeStamp - wentAt < SEQUENCE_MS;
  wentAt = key === 'g' ? event.timeStamp : key === 'Shift' ? wentAt : -Infinity;
  if (hasGone) { if (PLACES[key]) location.assign(PLACES[key]); }
  else if (key === '/') search(event);
  else if (key === 'c' && !event.repeat) location.assign('/new');
  else if (key === 'y') copyCommand();
  else if (key === '?') find('dialog#keys')?.showModal();
  else if (/^[1-9]$/.test(key)) find(`.tabs [data-tab="${key}"]`)?.click();
  else if (key === 'j' || key === 'k') stepRow(key === 'j' ? 1 : -1);
  else if (key === 'Enter' && event.target.matches('tr[tabindex]')) find('a', event.target)?.click();
}

function search(event) {
  const field = find('[data-search]');
  if (!field) return;
  event.preventDefault();
  field.focus();
}

function stepRow(step) {
  const rows = findAll('tbody tr[tabindex]');
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement.closest('tr'));
  rows[Math.max(0, Math.min(rows.length - 1, at + step))].focus();
}

async function togglePalette(load) {
  const open = find('dialog[open]');
  if (open) {
    if (open.matches('.palette')) open.close();
    return;
  }
  try {
    (await load()).open();
  } catch {
    toast('Go to or run could not be loaded: the service does not answer');
  }
}
