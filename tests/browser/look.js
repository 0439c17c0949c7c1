// What a test asks a page about how it looks: the body of a function, `arguments[0]` is the question.
const [question, ...given] = arguments;
const done = given.at(-1);

const isSeen = node => node.checkVisibility({ visibilityProperty: true, opacityProperty: false });
const named = node => {
  const where = node.id ? `#${node.id}` : node.dataset.key ? `[data-key=${node.dataset.key}]` : `.${[...node.classList].join('.')}`;
  return `${node.localName}${where} ${(node.getAttribute('aria-label') ?? node.textContent).trim().slice(0, 40)}`;
};
const all = selector => [...document.querySelectorAll(selector)];

// What Tab should come to: in the open dialog alone, if there is one; of radios of a name, one.
function stops() {
  const root = all('dialog[open]').at(-1) ?? document;
  const candidates = [...root.querySelectorAll('a[href], button, input, select, textarea, summary, output[tabindex], [tabindex], [contenteditable]')];
  const radios = new Set();
  return candidates.filter(node => {
    if (!isSeen(node) || node.matches(':disabled') || node.tabIndex < 0 || node.closest('[inert]')) return false;
    if (node.type !== 'radio') return true;
    const group = [...root.querySelectorAll(`input[type=radio][name="${CSS.escape(node.name)}"]`)];
    const key = group.find(other => other.checked) ?? group[0];
    return node === key && !radios.has(key) && radios.add(key);
  });
}

// How it is drawn, but for what the focus may not change unseen.
const drawn = node => {
  const seen = getComputedStyle(node), around = getComputedStyle(node.parentElement ?? node);
  return [seen.outlineStyle === 'none' ? '' : `${seen.outlineStyle} ${seen.outlineWidth} ${seen.outlineColor}`, seen.boxShadow, seen.borderColor, seen.backgroundColor,
    around.outlineStyle === 'none' ? '' : `${around.outlineStyle} ${around.outlineColor}`, around.boxShadow, around.borderColor].join('|');
};

// Something of it can be seen: it is in the window, and nothing lies over all of it.
function isHidden(node) {
  const box = node.getBoundingClientRect();
  const points = [[0.5, 0.5], [0.05, 0.1], [0.95, 0.1], [0.05, 0.9], [0.95, 0.9]];
  return !points.some(([x, y]) => {
    const top = document.elementFromPoint(box.left + box.width * x, box.top + box.height * y);
    return top && (node.contains(top) || top.contains(node) || top.closest('label')?.control === node);
  });
}

const questions = {
  // Wait until nothing has changed for a while, or for long enough.
  settled() {
    let last = performance.now(), requests = -1;
    const begun = last, seen = () => { last = performance.now(); };
    const observer = new MutationObserver(seen);
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    const timer = setInterval(() => {
      const now = performance.getEntriesByType('resource').length;
      if (now !== requests) { requests = now; seen(); }
      if (performance.now() - last < 150 && performance.now() - begun < 3000) return;
      clearInterval(timer);
      observer.disconnect();
      done(true);
    }, 25);
  },
  // How far things moved while it loaded, and what moved most.
  moved() {
    const found = [];
    const observer = new PerformanceObserver(list => found.push(...list.getEntries()));
    observer.observe({ type: 'layout-shift', buffered: true });
    setTimeout(() => {
      const most = found.sort((a, b) => b.value - a.value)[0];
      done([found.reduce((sum, entry) => sum + entry.value, 0), (most?.sources ?? []).map(source => source.node && source.node.nodeType === 1 ? named(source.node) : String(source.node?.textContent)).slice(0, 3)]);
    }, 50);
  },
  wider() {
    const root = document.documentElement;
    const by = root.scrollWidth - root.clientWidth;
    if (by <= 0) return '';
    const out = all('body *').filter(node => isSeen(node) && node.getBoundingClientRect().right > root.clientWidth + 0.5 && !node.closest('.vh'));
    return `by ${by} px: ${out.slice(-2).map(named).join('; ') || 'nothing seen'}`;
  },
  unnamed() {
    const nameOf = node => (node.getAttribute('aria-label') || (node.getAttribute('aria-labelledby') ?? '').split(' ').map(id => document.getElementById(id)?.textContent ?? '').join(' ') || [...node.childNodes].map(child => child.textContent).join(' ') || node.title).trim();
    return all('button, a[href], summary').filter(node => isSeen(node) && !nameOf(node)).map(node => node.outerHTML.slice(0, 120));
  },
  primaries() {
    return all('.primary').filter(node => isSeen(node) && !node.closest('dialog') && !node.closest('.notice')).map(named);
  },
  commands() {
    return [...all('[data-cmd]').map(node => [named(node), node.dataset.cmd]), ...all('[data-line], .cmd code').filter(isSeen).map(node => [node.localName, node.textContent])];
  },
  // Follow the focus from now on; `walked` says where it came.
  walk() {
    window.svcWalk = { stops: stops(), seen: [], bad: [] };
    document.activeElement?.blur();
    const before = new Map(window.svcWalk.stops.map(node => [node, drawn(node)]));
    document.addEventListener('focusin', event => {
      const { seen, bad } = window.svcWalk, node = event.target;
      if (seen.includes(node)) { window.svcWalk.isRound = true; return; }
      seen.push(node);
      if (before.has(node) && before.get(node) === drawn(node)) bad.push(`no focus is seen: ${named(node)}`);
      if (isHidden(node)) bad.push(`focused and hidden: ${named(node)}`);
    });
    return window.svcWalk.stops.length;
  },
  walked() {
    const { stops: expected, seen, bad } = window.svcWalk;
    const missed = expected.filter(node => node.isConnected && !seen.includes(node) && stops().includes(node));
    return [...bad, ...missed.map(node => `Tab does not reach: ${named(node)}`)];
  },
  markup() {
    return [...all('[onerror], [onload], img[src="x"]').map(node => node.outerHTML.slice(0, 100)), ...(window.svcHacked ? ['a script ran'] : [])];
  },
};
return questions[question]();
