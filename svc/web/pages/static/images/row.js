// One row of the images screen: an image of the store, one that is not there, or what is under way.
import { bar, element, stateMark } from '../frame/dom.js';
import { formatSize } from '../frame/format.js';
import { IMAGE_BUILD, IMAGE_DELETE, IMAGE_PULL, IMAGE_REMOVE } from '../generated/actions.js';
import { cancelCommand } from '../parts/cancelling.js';
import { rowButton } from '../parts/row_buttons.js';
import { cell } from '../parts/tables.js';
import { progressText } from '../parts/progress_text.js';

const SHORT_ID = 12;
const PHASES = { checking: 'Looking for it', pulling: 'Pulling', building: 'Building', copying: 'Copying',
  creating: 'Creating its workspace' };
export const gib = formatSize;
export const nameOfImage = ({ names, image_id: id }) => names[0] ?? id.slice(0, SHORT_ID);
const isBuilt = ref => ref.startsWith('localhost/svc/');
export const verbOf = ref => isBuilt(ref) ? 'build' : 'pull';
export const actionFor = ref => isBuilt(ref) ? IMAGE_BUILD : IMAGE_PULL;

// The command that removes it: a template's by its template, any other by its name.
export const removalOf = ({ stored, templateNames }) =>
  stored.templates.length
    ? { cmd: [IMAGE_DELETE, templateNames[0], '--yes'],
      path: `/api/templates/${encodeURIComponent(stored.templates[0].id)}/image` }
    : { cmd: [IMAGE_REMOVE, nameOfImage(stored), '--yes'], path: `/api/images/${encodeURIComponent(stored.image_id)}` };

// `entry`: {id, words: what its templates are called, ref, stored or null, image or null}.
export function imageRow(entry, context) {
  const { templateNames, ref, stored } = entry;
  const needed = stored?.used_by ?? [];
  return element('tr', { tabindex: '-1' },
    cell(null, '', element('div.stack', element('span.name.ref', templateNames.join(', ')
      || (stored?.left_by_build
        ? 'left by a build'
        : stored?.names.length === 0
        ? 'of an earlier build or pull'
        : 'no template')), element('span.muted.small.mono.ref', ref),
      ...(stored?.names.slice(1) ?? []).map(other => element('span.muted.small.mono.ref', other)))),
    cell('State', '', ...stateOfImage(entry)), cell('Needed by', 'small mono ref', needed.join(', ')
      || (stored?.containers ? `${stored.containers} container${stored.containers === 1 ? '' : 's'}` : '')),
    cell('Size', 'r', stored ? gib(stored.size_bytes) : ''),
    cell('Own layers', 'r', stored ? gib(stored.unique_bytes) : ''),
    cell('Shared', 'r muted', stored?.shared_bytes ? gib(stored.shared_bytes) : ''),
    cell('Frees', 'r is-warn', stored?.reclaimable_bytes ? gib(stored.reclaimable_bytes) : ''),
    cell(null, 'c-act', element('div.row', ...actions(entry, context))));
}

function stateOfImage({ stored, image, isBarred }) {
  if (image?.operation) return [stateMark('busy', PHASES[image.operation.phase] ?? 'Waiting')];
  if (stored) return [stored.unused ? stateMark('stopped', 'Unused') : stateMark('ok', 'Ready')];
  if (image.status === 'failed')
    return [stateMark('failed', 'Failed'), element('div.small.is-danger.ref', image.error ?? '')];
  return isBarred ? [stateMark('failed', 'Its registry is not allowed')] : [stateMark('stopped', 'Not in your store')];
}

function actions(entry, { isOffline, busy, press }) {
  const { stored, image, ref, templateNames } = entry, name = templateNames[0] ?? ref;
  if (image?.operation || entry.isBarred) return [];
  const isOff = isOffline || busy === entry.id;
  if (!stored) {
    const row = actionFor(ref);
    return [
      rowButton('get', row.label, name, [row, templateNames[0]], { isOffline: isOff, kind: '', press: () =>
        press('get', entry) }),
    ];
  }
  if (stored.used_by.length || stored.containers) return [];
  return [
    rowButton('remove', IMAGE_REMOVE.label, name, removalOf(entry).cmd, { isOffline: isOff,
      press: () => press('remove', entry) }),
  ];
}

// ---- under way ----

/** @param {Api.Operation} operation */
export function operationRow(operation, { isOffline, busy, press }) {
  const { id, kind, subject, template } = operation, name = template?.name ?? subject.name;
  const isOff = isOffline || busy === id;
  return element('tr', { tabindex: '-1' },
    cell(null, '',
      element('div.stack', element('span.name.ref', name),
        kind !== 'setup' && element('span.muted.small.mono.ref', subject.name))),
    cell('State', '', element('div.stack', ...progressOf(operation))), cell(null, 'muted small', ...(kind === 'setup'
      ? ['for ',
        element('a.mono.ref', { href: `/new?setup=${encodeURIComponent(id)}`, cmd: ['operation watch', id],
          key: 'for' }, subject.name)]
      : [])), cell(null, 'c-act', element('div.row', kind === 'build' && template
        && element('a.btn.sm.quiet', { href: `/templates/${encodeURIComponent(template.id)}`,
          'aria-label': `Log of the build of ${name}`, cmd: ['operation log', id], key: 'log' }, 'Log'),
        rowButton('cancel', 'Cancel', name, cancelCommand(id), { isOffline: isOff, kind: '',
          press: () => press('cancel', operation) }))));
}

function progressOf({ status, phase, progress }) {
  const { current = 0, total, text } = progress ?? {};
  const mark = stateMark('busy', status === 'queued' ? 'Waiting for its turn' : PHASES[phase] ?? 'Begun');
  if (!total) return [mark, text && element('span.muted.small.ref', text)];
  return [mark, bar(current / total * 100, 'busy'), element('span.muted.small.num.ref', progressText(progress))];
}
