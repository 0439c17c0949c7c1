// A screen that is not in the browser yet: the command that does the same, with the name from the address.
import { find, findAll } from '../frame/dom.js';
import { goLive, startFrame } from '../frame/frame.js';
import { setLine } from '../frame/line.js';
import { quoted } from '../frame/words.js';

const name = decodeURIComponent(location.pathname.split('/')[2] ?? '');
for (const code of findAll('#main code')) if (name) code.textContent = code.textContent.replaceAll('NAME', quoted(name));
setLine(find('#main code').textContent);
await startFrame({ refresh: () => {} });
goLive();
