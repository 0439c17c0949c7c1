// Elements are built one by one, and text comes in as text: nothing here, or anywhere, parses mark-up.
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
 * An element: 'tag.class.class', attributes by their names, listeners as `on: {click}`, then children; attributes may
 * be absent, and null and false are left out.
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

export const drawn = (tag, ...content) => filled(document.createElementNS(SVG, tag), content);

function filled(node, content) {
  const { on = {}, ...attributes } = content[0]?.constructor === Object ? content.shift() : {};
  for (const [name, value] of Object.entries(attributes)) setAttribute(node, name, value);
  for (const [name, listener] of Object.entries(on)) node.addEventListener(name, listener);
  node.append(...content.flat().filter(child => child !== null && child !== undefined && child !== false));
  return node;
}

export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? '' : name === 'href' ? safeUrl(value) : value);
}

// A link goes to this service or to a web page: a record cannot make one that runs a script.
function safeUrl(url) {
  const { protocol } = new URL(url, location.href);
  return protocol === 'https:' || protocol === 'http:' ? url : '#';
}

/** @param {keyof typeof ICONS} name */
export function icon(name) {
  return drawn('svg', { class: 'i', viewBox: '0 0 16 16', 'aria-hidden': 'true' }, drawn('path', { d: ICONS[name] }));
}

// A bar of so many percent, whose widths are attributes of SVG: the policy allows no styles.
export function bar(percent, kind = '') {
  const width = `${Math.max(0, Math.min(100, percent))}%`;
  return drawn('svg', { class: 'bar', 'aria-hidden': 'true' },
    drawn('rect', { class: kind, x: '0%', width, height: '100%' }));
}

// A command and the button that copies it.
export function command(text) {
  return element('div.cmd', element('code', text),
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
