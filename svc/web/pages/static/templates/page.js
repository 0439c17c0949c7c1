// What the screens of templates have in common: places that stand still, and buttons.
import { element, find, findAll, keyOfFocus } from '../frame/dom.js';
import { isOffline } from '../frame/frame.js';
import { isUnderHand } from '../parts/still.js';

// Put content into a place, unless it is the same: a menu stays open, the focus where it is.
export function putIn(place, ...content) {
  if (isUnderHand(place, () => putIn(place, ...content))) return;
  const next = place.cloneNode(false);
  next.append(...content.flat().filter(Boolean));
  const open = findAll('details[open]', place).map(menu => menu.dataset.key);
  for (const key of open) find(`details[data-key="${CSS.escape(key)}"]`, next)?.setAttribute('open', '');
  if (next.isEqualNode(place)) return;
  const key = keyOfFocus(place);
  place.replaceChildren(...next.childNodes);
  if (key) find(`[data-key="${CSS.escape(key)}"]`, place)?.focus();
}

// A button and its command; `why` says why it does nothing now.
export function pressable(content, { cmd, key, run, kind = '', why = '', label = null }) {
  const button = element('button', {
    class: `btn ${kind}`.trim(),
    cmd,
    key,
    'aria-label': label,
    'data-action': why ? null : true,
    'aria-disabled': Boolean(why || isOffline()),
    'aria-describedby': why ? `why-${key}` : null,
    click: () => {
      if (!why && !isOffline()) run(button);
    },
  }, ...[content].flat());
  return why
    ? element('span.row', button, element('span.muted.small', { id: `why-${key}` }, why))
    : button;
}
