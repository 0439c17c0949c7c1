// A file's content: text as text, a picture as the browser draws it, all else by download. Nothing of it is a page.
import { call } from '../frame/api.js';
import { element, icon, setAttribute } from '../frame/dom.js';
import { ticketed } from './downloads.js';
import { refused } from '../frame/notices.js';
import { loadCommand, openCommand, removeCommand, renameCommand } from './commands.js';
import { apiOf, readable } from './paths.js';
import { byteSize, time } from '../frame/format.js';
import { spelledOut } from '../parts/unseen.js';

const PART = 128 * 1024, TEXT_MAX = 1 << 20, PICTURE_MAX = 64 << 20;
const PICTURES = /\.(png|jpe?g|gif|webp|avif|bmp|ico)$/i;

// The panel of a file; `act` does what its buttons say.
export function preview(root, entry, { act, barred }) {
  const body = element('div.preview', { 'aria-busy': true });
  const writes = (kind, label, cmd, more = {}) =>
    element('button', { class: `btn sm ${more.class ?? ''}`, 'data-act': kind, key: kind, cmd,
      'aria-disabled': Boolean(barred()), title: barred() || null, click: () => act(kind, [entry]) }, label);
  const panel = element('section.panel', { 'aria-label': spelledOut(entry.name) },
    element('header', element('h2.mono.ref', { dir: 'auto' }, spelledOut(entry.name)),
      element('span.muted.small.num', `${byteSize(entry.size)}, mode ${entry.mode}`, entry.modified_at && ', changed ',
        entry.modified_at && time(entry.modified_at, 'day')),
      element('div.actions',
        element('button.btn.sm', { 'data-act': 'download', key: 'download', cmd: loadCommand(root, entry),
          click: () => act('download', [entry]) }, icon('download'), 'Download'),
        writes('rename', 'Rename', renameCommand(root, entry)),
        writes('remove', 'Remove', removeCommand(root, entry), { class: 'danger' }))), body);
  fill(root, entry, body).catch(error => {
    if (error.status !== 401)
      body.replaceChildren(
        element('div.body', refused(error, { what: 'It could not be read.', answers: false }))
      );
  })
    .finally(() => setAttribute(body, 'aria-busy', null));
  return panel;
}

async function fill(root, entry, body) {
  if (entry.type !== 'file') {
    say(body, 'A pipe, a socket or a device: it can be neither shown nor downloaded.');
    return;
  }
  if (entry.size === 0) {
    say(body, 'The file is empty.');
    return;
  }
  if (PICTURES.test(readable(entry.path)) && entry.size <= PICTURE_MAX) {
    await showPicture(root, entry, body);
    return;
  }
  await showText(root, entry, body);
}

const say = (body, text) => body.replaceChildren(element('p.body.muted', text));

async function showPicture(root, entry, body) {
  const picture = element('img', { alt: spelledOut(entry.name),
    src: await ticketed(apiOf(root, 'download', entry.path)) });
  await new Promise(resolve => {
    picture.addEventListener('load', resolve);
    picture.addEventListener('error', resolve);
    body.replaceChildren(picture);
  });
  if (picture.naturalWidth === 0) say(body, 'The browser cannot draw this picture; download it.');
}

async function showText(root, entry, body) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const text = element('pre.code.scroll-x', { tabindex: '0', dir: 'auto',
    'aria-label': `Content of ${spelledOut(entry.name)}` });
  const foot = element('footer');
  let offset = 0;
  const more = async () => {
    const part = await call('GET', apiOf(root, 'read', entry.path, `&offset=${offset}&length=${PART}`));
    const bytes = Uint8Array.from(atob(part.content), char => char.charCodeAt(0));
    const texts = decoder.decode(bytes, { stream: part.truncated });
    if (texts.includes('\0')) throw new TypeError('binary');
    offset += bytes.length;
    text.append(texts);
    showRest(part.truncated && bytes.length > 0, part.size);
  };
  const showRest = (hasMore, size) => {
    foot.hidden = !hasMore;
    if (!hasMore) return;
    const rest = offset < TEXT_MAX
      ? element('button.btn.sm', { cmd: openCommand(root, entry, '--offset', offset),
        click: event => busily(event.currentTarget) }, 'Show more')
      : element('span.muted.small', 'Download it for the rest.');
    foot.replaceChildren(element('span.muted.small.num', `${byteSize(offset)} of ${byteSize(size)}`), rest);
  };
  const busily = async button => {
    setAttribute(button, 'aria-busy', true);
    await more().catch(error =>
      foot.replaceChildren(
        element('span.muted.small', isBinary(error) ? 'From here on it is no text.' : spelledOut(error.message))
      )
    );
  };
  try {
    await more();
  } catch (error) {
    if (!isBinary(error)) throw error;
    say(body, 'This is no text that can be shown; download it.');
    return;
  }
  body.replaceChildren(text, foot);
}

const isBinary = error => error instanceof TypeError || error.name === 'InvalidCharacterError';
