// The registries that images may come from. The list is root's: what is changed here becomes the exact commands.
import { call } from '../frame/api.js';
import { announce } from '../frame/notices.js';
import { startAdmin } from './page.js';
import { code, command, element, find, icon, panel, replace, setAttribute } from '../frame/dom.js';
import { setCommand } from '../frame/foot.js';
import { apiCommand, json } from './commands.js';
import { setError, plainInput } from '../parts/form.js';
import { pagesOf } from '../parts/lists.js';
import { showRows } from '../parts/rows.js';
import { skeletonOf, cell, tableOf } from '../parts/tables.js';
import { commandText, quoted } from '../frame/commands.js';
import { counted } from '../frame/format.js';
import { ADMIN_REGISTRIES } from '../generated/actions.js';

const HEADS = ['Registry', 'Path', 'Transport', ''];
const HOST = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?$/,
  PATH = /^(?!.*\.\.)(?:[a-z0-9._-]+(?:\/[a-z0-9._-]+)*\/?)?$/;
const MOST = 64;

const known = { entries: [], isRead: false };
const view = { pages: 1 };
const draft = { added: [], removed: new Set() }; // not in force: names that go, entries that come

/** @type {(entry: Api.Registry) => string} */
const keyOf = ({ host, path_prefix: prefix }) => [host, prefix.replace(/^\/+|\/+$/g, '')].filter(Boolean).join('/');
const addCommand = entry => ['admin registry add', keyOf(entry), entry.insecure && '--insecure'];
const removeCommand = name => ['admin registry remove', name];

async function read(options) {
  const { items } = await call('GET', '/api/images/allowlist', options);
  known.entries = items;
  const before = changes();
  // What is in force by now is no change any more.
  const names = new Map(items.map(entry => [keyOf(entry), entry]));
  draft.added = draft.added.filter(entry => names.get(keyOf(entry))?.insecure !== entry.insecure);
  draft.removed = new Set([...draft.removed].filter(name => names.has(name)));
  if (known.isRead && before > 0 && changes() === 0) announce('The changes are in force');
  known.isRead = true;
}

const changes = () => draft.added.length + draft.removed.size;

// The list as it would be: entries that are changed stand where they stood.
function requested() {
  const added = new Map(draft.added.map(entry => [keyOf(entry), entry]));
  const kept = known.entries.filter(entry => !draft.removed.has(keyOf(entry))).map(entry =>
    added.get(keyOf(entry)) ?? entry
  );
  const names = new Set(kept.map(keyOf));
  return [...kept, ...draft.added.filter(entry => !names.has(keyOf(entry)))];
}

function show() {
  if (!find('#screen table')) {
    find('#screen').replaceChildren(
      element('div.cols.side-r',
        panel('list-h', 'Allowlist', element('span.muted.small.num', { 'data-count': true }),
          tableOf('Allowlist', HEADS),
          element('div.empty', { 'data-none': true, hidden: true }, element('h2', 'No registry is allowed'),
            element('p', 'Nobody can pull or build. Add one below.')),
          element('footer', { 'data-more': true, hidden: true }), element('footer', addForm())),
        element('section.panel', { 'aria-labelledby': 'how-h' },
          element('header', element('h2', { id: 'how-h', 'data-how-h': true })),
          element('div.body.stack-4', { 'data-how': true })))
    );
  }
  showList();
}

function showList() {
  const names = new Set(known.entries.map(keyOf));
  const fresh = draft.added.filter(entry => !names.has(keyOf(entry)));
  const rows = [
    ...known.entries.map(entry => ({ entry, goes: draft.removed.has(keyOf(entry)),
      becomes: draft.added.find(other => keyOf(other) === keyOf(entry)) })
    ),
    ...fresh.map(entry => ({ entry, comes: true })),
  ];
  const listed = pagesOf(rows, find('[data-more]'), view, showList);
  showRows(find('#screen tbody'),
    listed.map(row => ({ id: keyOf(row.entry), key: JSON.stringify(row), build: () => rowOf(row) })));
  find('[data-none]').hidden = rows.length > 0;
  find('[data-count]').textContent = counted(known.entries.length, 'entry', 'entries');
  showHow();
  setCommand(changes() ? wholeCommand() : ['image allowlist']);
}

// The whole list in one command; of several changes, the one that makes them together.
function wholeCommand() {
  const list = commands();
  return list.length === 1
    ? list[0]
    : `${commandText([ADMIN_REGISTRIES, '-'])} <<< ${quoted(json({ registries: requested().map(shortOf) }))}`;
}

// Without what is so by default.
const shortOf = ({ host, path_prefix: prefix, insecure }) => ({ host, ...(prefix && { path_prefix: prefix }),
  ...(insecure && { insecure }) });

const commands = () => [...draft.added.map(addCommand), ...[...draft.removed].map(removeCommand)];

function rowOf({ entry, goes, comes, becomes }) {
  const name = keyOf(entry), { insecure } = becomes ?? entry;
  const tag = goes
    ? element('span.tag.danger', 'to go')
    : comes
    ? element('span.tag.ok', 'to come')
    : becomes
    ? element('span.tag.warn', 'to change')
    : null;
  const isChange = goes || comes || becomes;
  const button = element('button.btn.sm.quiet', { 'aria-label': `${isChange ? 'Undo' : 'Remove'} ${name}`,
    cmd: isChange ? ['image allowlist'] : removeCommand(name), key: 'turn', click: () => turn(entry, isChange) },
    isChange ? 'Undo' : 'Remove');
  return element('tr', { tabindex: '-1' },
    cell(null, '', element('div.row', element('span.name.ref', entry.host), tag)),
    cell('Path', entry.path_prefix ? 'mono small ref' : 'mono small muted', entry.path_prefix || 'any'),
    cell('Transport', '', insecure
      ? element('span.tag.warn', 'plain HTTP or unknown certificate')
      : element('span.muted.small', 'HTTPS')), cell(null, 'c-act', element('div.row', button)));
}

function turn(entry, isChange) {
  const name = keyOf(entry);
  if (isChange) {
    draft.removed.delete(name);
    draft.added = draft.added.filter(other => keyOf(other) !== name);
  } else draft.removed.add(name);
  showList();
}

function showHow() {
  const list = commands();
  find('[data-how-h]').textContent = list.length ? `${counted(list.length, 'change')}, not in force` : 'To change it';
  const place = find('[data-how]');
  const why = element('p.soft.small',
    "The list is a file of root's: what users pull runs on the host, and a stolen session of an administrator "
      + 'must not add a place to pull from. ',
    list.length ? 'On the host, as root:' : 'Take one off, or add one: the commands stand here then.');
  if (list.length === 0) {
    replace(place, why, element('p.muted.small', "Logins of the host are root's too, and not shown here:"),
      command(['admin registry list']));
    return;
  }
  const marks = [...draft.added.map(entry => ['ok', '+', `${keyOf(entry)}${entry.insecure ? ' (insecure)' : ''}`]),
    ...[...draft.removed].map(name => ['danger', '−', name])];
  const whole = list.length > 1
    && [element('p.soft.small', 'Or the whole list in one:'), command(wholeCommand())];
  const warning = requested().length === 0
    ? element('p.small.is-warn', 'Nothing would be allowed then: nobody could pull or build.')
    : requested().length > MOST
    ? element('p.small.is-danger', `A list has at most ${MOST} entries.`)
    : null;
  replace(place,
    ...marks.map(([kind, mark, text]) =>
      element('div.row.small.nowrap', element('span', { class: `tag ${kind}` }, mark), element('span.mono.ref', text))
    ), ...[warning].filter(Boolean), why, ...list.map(command), ...(whole || []),
    element('p.muted.small',
      "Images that users have stay, and so do workspaces made from them. The host's login of a registry goes "
        + 'with its last entry.'),
    element('p.muted.small', 'Whether it is in force: ', code(apiCommand('GET', '/api/images/allowlist')),
      '. This page sees it by itself.'));
}

// `https://quay.io/team/` is what people paste: the host and the path of it.
function parsed(text) {
  const [host, ...path] = text.trim().toLowerCase().replace(/^[a-z]+:\/\//, '').split('/');
  return { host, path_prefix: path.filter(Boolean).join('/') };
}

function addForm() {
  const where = plainInput('mono', { id: 'f-registry', name: 'registry', placeholder: 'quay.io/team', size: '24',
    maxlength: '512', key: 'registry' });
  const insecure = element('input', { type: 'checkbox', id: 'f-insecure', name: 'insecure' });
  const button = element('button.btn', { type: 'submit', key: 'add', cmd: ['admin registry add', 'HOST'] },
    icon('plus'), 'Add');
  const entryOf = () => ({ ...parsed(where.value), insecure: insecure.checked });
  const say = text => {
    setError(where, text);
    where.focus();
  };
  const follow = () => {
    const entry = entryOf();
    const cmd = HOST.test(entry.host) && PATH.test(entry.path_prefix)
      ? addCommand(entry)
      : ['admin registry add', 'HOST'];
    setError(where);
    setAttribute(button, 'data-cmd', cmd);
    if (where.value.trim()) setCommand(cmd);
  };
  const submit = event => {
    event.preventDefault();
    const entry = entryOf(), name = keyOf(entry);
    const present = known.entries.find(other => keyOf(other) === name);
    if (!HOST.test(entry.host)) {
      say('A host and perhaps a port, then perhaps a path: quay.io, registry.example:5000/team.');
      return;
    }
    if (!PATH.test(entry.path_prefix)) {
      say('A path has a-z, 0-9, dots, dashes and underscores between its slashes.');
      return;
    }
    if (present && present.insecure === entry.insecure && !draft.removed.has(name)) {
      say(`${name} is on the list.`);
      return;
    }
    draft.removed.delete(name);
    draft.added = draft.added.filter(other => keyOf(other) !== name);
    if (!present || present.insecure !== entry.insecure) draft.added.push(entry);
    where.value = '';
    insecure.checked = false;
    follow();
    showList();
  };
  return element('form.stack-2', { novalidate: true, on: { input: follow, submit } },
    element('div.row',
      element('div.field', element('label.vh', { for: where.id }, 'Registry, with a path or without'), where), button,
      element('label.check.small', { for: insecure.id }, insecure,
        element('span', 'Plain HTTP, or a certificate that nobody signed'))));
}

await startAdmin({ read, show, loading: () => skeletonOf('Allowlist', HEADS, [['3'], ['2'], ['2'], []], 10),
  failed: 'The allowlist could not be read.', wants: event => event.type === 'registries.changed' });
