// The command line at the foot: the command of the screen, or of the button under the pointer or focus.
import { commandText } from './commands.js';
import { closestTo, element, find } from './dom.js';

let line = null, own = '';

export function startLine() {
  document.addEventListener('click', copyOnClick);
  line = find('[data-line]');
  if (!line) return;
  setLine(line.textContent);
  for (const name of ['mouseover', 'focusin']) document.addEventListener(name, preview);
  document.addEventListener('mouseleave', preview);
  document.addEventListener('focusout', () => {
    if (line.parentElement.hasAttribute('data-preview')) show('');
  });
}

// Set the screen's command; it follows filters and forms.
export function setLine(command) {
  own = commandText(command);
  if (line) line.parentElement.dataset.own = own;
  if (line && !line.parentElement.hasAttribute('data-preview')) line.textContent = own;
}

export function copyLine() {
  if (line) copyText(line.textContent);
}

// A preview may make the line grow under the pointer: the line itself changes no preview.
function preview(event) {
  if (event.type === 'mouseover' && line.parentElement.contains(event.target)) return;
  show(closestTo(event, '[data-cmd]')?.dataset.cmd ?? '');
}

function show(text) {
  line.parentElement.toggleAttribute('data-preview', text !== '');
  if (line.textContent !== (text || own)) line.textContent = text || own;
}

function copyOnClick(event) {
  const button = closestTo(event, '[data-copy], [data-copy-line]');
  if (!button) return;
  copyText(button.hasAttribute('data-copy') ? find('code', button.parentElement).textContent : line.textContent);
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
