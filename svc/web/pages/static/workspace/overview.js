// What a workspace is and does now.
import { element, find, replace } from '../frame/dom.js';
import { quoted } from '../frame/words.js';
import { startWorkspace } from './head.js';

function show(record) {
  replace(find('#screen'), element('p', { class: 'muted' }, record.id));
}

await startWorkspace({ tab: 'overview', show, line: record => `svc ws get ${quoted(record.name)}` });
