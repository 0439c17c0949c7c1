// What the three pages of the settings share: their skeleton, the tab, and days.
import { element, find } from '../frame/dom.js';
import { panelSkeleton, showExpiring } from '../frame/frame.js';
import { startPage } from '../screen/page.js';

let signedIn = null;

// Begin a page as startPage does; `show(session)` gets the session, and `rows` is the number of rows of the skeleton.
export function startSettings({ rows = 4, show, ...screen }) {
  return startPage({
    ...screen,
    show: () => show(signedIn),
    loading: () => panelSkeleton('settings', rows, ['3', '2', '3']),
    may: found => {
      setSession(found);
      countOnTab(found.attention.tokens_expiring);
      return true;
    },
  });
}

// The session may have been replaced by another.
export function setSession(found) {
  signedIn = { ...signedIn, ...found };
}

// The tokens that expire soon, on the tab and in the navigation.
export function countOnTab(number) {
  showExpiring(number);
  const tab = find('[data-tab-of=settings_tokens]');
  find('.count', tab)?.remove();
  if (number)
    find('kbd', tab).before(
      element('span.count.warn', String(number),
        element('span.vh', ` ${number === 1 ? 'expires' : 'expire'} within seven days`))
    );
}

// A day, exact in its title.
export function day(iso) {
  const date = new Date(iso);
  const isThisYear = date.getFullYear() === new Date().getFullYear();
  const text = date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short',
    year: isThisYear ? undefined : 'numeric' });
  return element('time', { datetime: date.toISOString(),
    title: `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC` }, text);
}
