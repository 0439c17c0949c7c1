// Elements are built one by one, and text comes in as text: nothing here, or anywhere, parses mark-up.
import { commandText } from './commands.js';
import { ICONS } from './icons.js';

const SVG = 'http://www.w3.org/2000/svg';

/** @type {<S extends string>(selector: S, root?: ParentNode) => Page.Found<S> | null} */
export const find = (selector, root = document) => root.querySelector(selector);

/** @type {<S extends string>(selector: S, root?: ParentNode) => Page.Found<S>[]} */
export const findAll = (selector, root = document) => /** @type {any[]} */ ([...root.querySelectorAll(selector)]);

/** @type {<S extends string>(event: Event, selector: S) => Page.Found<S> | null} */
export const closestTo = ({ target }, selector) => (target instanceof Element ? target.closest(selector) : null);

/**
 * The children of a body of rows, or of another element.
 * @param {Element} body
 */
export const rowsIn = body => /** @type {HTMLElement[]} */ ([...body.children]);

// Tables keep their roles where a narrow window folds them.
const ROLES = { table: 'table', thead: 'rowgroup', tbody: 'rowgroup', tr: 'row', th: 'columnheader', td: 'cell' };

/**
 * An element: 'tag.class.class', attributes by their names, then children; attributes may be absent, and null and false
 * are left out. `cmd` is the command that does the same, `key` the name by which it gets the focus back, `click` a
 * listener, `on` has the others.
 * @template {string} T
 * @param {T} tag
 * @param {...any} content
 * @returns {Page.OfTag<Page.Before<T, '.'>>}
 */
export function element(tag, ...content) {
  const [name, ...classes] = tag.split('.'), node = /** @type {any} */ (document.createElement(name));
  if (classes.length) node.className = classes.join(' ');
  if (name === 'button') node.type = name; // it sends no form by itself
  setAttribute(node, 'role', ROLES[name]);
  return filled(node, content);
}

/**
 * A panel with a heading. `head` is what its header has besides; the content may begin with attributes.
 * @param {string} id
 * @param {any} title
 * @param {any} head
 * @param {...any} content
 */
export function panel(id, title, head, ...content) {
  const more = attributesOf(content);
  return element('section.panel', { 'aria-labelledby': id, ...more },
    element('header', element('h2', { id }, title), head), ...content);
}

/**
 * A notice of a kind, such as 'warn.inset', with an icon; the content may begin with attributes.
 * @param {string} kind
 * @param {string} picture
 * @param {...any} content
 */
export function notice(kind, picture, ...content) {
  const more = attributesOf(content);
  return element(['div.notice', kind].filter(Boolean).join('.'), more, icon(picture), element('div', ...content));
}

// What stands where there is nothing; the content may begin with attributes.
export function empty(title, ...content) {
  const more = attributesOf(content);
  return element('section.empty.dash', more, element('h2', title), ...content);
}

// A state: a shape and a text, never colour alone.
export const stateMark = (kind, ...content) => element('span', { class: `state ${kind}` }, ...content);

export const drawn = (tag, ...content) => filled(document.createElementNS(SVG, tag), content);

const attributesOf = content => content[0]?.constructor === Object ? content.shift() : {};

function filled(node, content) {
  const { cmd = null, key = null, click = null, on = {}, ...attributes } = attributesOf(content);
  setAttribute(node, 'data-cmd', cmd);
  setAttribute(node, 'data-key', key);
  for (const [name, value] of Object.entries(attributes)) setAttribute(node, name, value);
  if (click) node.addEventListener('click', click);
  for (const [name, listener] of Object.entries(on)) node.addEventListener(name, listener);
  node.append(...content.flat().filter(child => child !== null && child !== undefined && child !== false));
  return node;
}

// Set an attribute; null, undefined and false remove it. A state of ARIA is 'true' in words.
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, attributeOf(name, value));
}

function attributeOf(name, value) {
  if (name === 'data-cmd') return commandText(value);
  if (value === true) return name.startsWith('aria-') ? 'true' : '';
  return name === 'href' ? safeUrl(value) : value;
}

// A link goes to this service or to a web page: a record cannot make one that runs a script.
function safeUrl(url) {
  const { protocol } = new URL(url, location.href);
  return protocol === 'https:' || protocol === 'http:' ? url : '#';
}

// An icon by its name, or one that only its screen has by its path.
export const icon = name =>
  drawn('svg', { class: 'i', viewBox: '0 0 16 16', 'aria-hidden': true }, drawn('path', { d: ICONS[name] ?? name }));

// A bar of so many percent, whose widths are attributes of SVG: the policy allows no styles.
export function bar(percent, kind = '') {
  const width = `${Math.max(0, Math.min(100, percent))}%`;
  return drawn('svg', { class: 'bar', 'aria-hidden': true },
    drawn('rect', { class: kind, x: '0%', width, height: '100%' }));
}

export const code = list => element('code', commandText(list));

// A command and the button that copies it.
export function command(list) {
  return element('div.cmd', code(list),
    element('button.btn.icon', { 'data-copy': true, 'aria-label': 'Copy the command' }, icon('copy')));
}

// The data-key of the control in a place that has the focus, or null.
export function keyOfFocus(place) {
  const control = document.activeElement;
  return control instanceof HTMLElement && place.contains(control) ? control.dataset.key ?? null : null;
}

// Put new content into a place, and the focus back to the control that had it (by its data-key).
export function replace(place, ...content) {
  const key = keyOfFocus(place);
  place.replaceChildren(...content);
  if (key) find(`[data-key="${CSS.escape(key)}"]`, place)?.focus();
}
