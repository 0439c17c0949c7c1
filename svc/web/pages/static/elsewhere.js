// A screen that is not in the browser yet: the command that does the same, with the name from the address.
import { find, findAll } from './dom.js';
import { goLive, startFrame } from './frame.js';
import { setLine } from './line.js';
import { quoted } from './words.js';

const name = decodeURIComponent(location.pathname.split('/')[2] ?? '');
for (const code of findAll('#main code')) if (name) code.textContent = code.textContent.replaceAll('NAME', quoted(name));
setLine(find('#main code').textContent);
await startFrame({ refresh: () => {} });
goLive();
