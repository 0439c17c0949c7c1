// The command line at the foot: the command of the screen, or of the button under the pointer or focus.
import { commandText } from './commands.js';
import { closestTo, element, find } from './dom.js';

let place = null, own = '';

export function startFoot() {
  document.addEventListener('click', copyOnClick);
  place = find('[data-command]');
  if (!place) return;
  setCommand(place.textContent);
  for (const name of ['mouseover', 'focusin']) document.addEventListener(name, preview);
  document.addEventListener('mouseleave', preview);
  document.addEventListener('focusout', () => {
    if (place.parentElement.hasAttribute('data-preview')) show('');
  });
}

// Set the screen's command; it follows filters and forms.
export function setCommand(command) {
  own = commandText(command);
  if (place) place.parentElement.dataset.own = own;
  if (place && !place.parentElement.hasAttribute('data-preview')) place.textContent = own;
}

export function copyCommand() {
  if (place) copyText(place.textContent);
}

// A preview may make the foot grow under the pointer: the foot itself changes no preview.
function preview(event) {
  if (event.type === 'mouseover' && place.parentElement.contains(event.target)) return;
  show(closestTo(event, '[data-cmd]')?.dataset.cmd ?? '');
}

function show(text) {
  place.parentElement.toggleAttribute('data-preview', text !== '');
  if (place.textContent !== (text || own)) place.textContent = text || own;
}

function copyOnClick(event) {
  const button = closestTo(event, '[data-copy], [data-copy-command]');
  if (!button) return;
  copyText(button.hasAttribute('data-copy') ? find('code', button.parentElement).textContent : place.textContent);
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast('Copied');
  } catch {
    toast('The browser refused to copy; mark the text and copy it yourself');
  }
}

// Show a short message for 2.5 s; nothing that must be read.
export function toast(text) {
  const visible = element('div.toast', text);
  find('.toasts').replaceChildren(visible);
  setTimeout(() => visible.remove(), 2500);
}
