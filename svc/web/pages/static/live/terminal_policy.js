// xterm.js under the policy of the pages, which refuses <style> elements and `style` attributes.
//
// It writes both: a sheet for its sizes and its colours, and an attribute for each 24-bit colour. Scripts may set
// sheets and styles as objects, so what it writes goes there: no nonce, and nothing is allowed that was not.

export function letXtermStyle() {
  const create = document.createElement.bind(document);
  document.createElement = (tag, options) => (tag === 'style' ? standIn(create('span')) : create(tag, options));
  const set = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function setAttributeOrStyle(name, value) {
    if (name === 'style' && this instanceof HTMLElement) this.style.cssText = value;
    else set.call(this, name, value);
  };
}

// What xterm.js takes for its <style>: its text is a sheet of the document until it is removed.
function standIn(node) {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  node.hidden = true;
  Object.defineProperty(node, 'textContent', { get: () => '', set(text) {
    sheet.replaceSync(text);
  } });
  node.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter(other => other !== sheet);
    Element.prototype.remove.call(node);
  };
  return node;
}
