// An address that no page has: which one, as the person typed it.
import { find, findAll } from '../frame/dom.js';
import { hostName } from '../frame/frame.js';

for (const node of findAll('[data-host]')) node.textContent = hostName();
document.title = `${document.title} · ${hostName()}`;
find('[data-path]').textContent = location.pathname;
