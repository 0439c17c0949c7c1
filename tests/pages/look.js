// What a test asks a page about how it looks: the body of a function, `arguments[0]` is the question.
const [question, ...parameters] = arguments;
const done = parameters.at(-1);

const isSeen = node => node.checkVisibility({ visibilityProperty: true, opacityProperty: false });
const named = node => {
  const where = node.id
    ? `#${node.id}`
    : node.dataset.key
    ? `[data-key=${node.dataset.key}]`
    : `.${[...node.classList].join('.')}`;
  return `${node.localName}${where} ${(node.getAttribute('aria-label') ?? node.textContent).trim().slice(0, 40)}`;
};
const all = selector => [...document.querySelectorAll(selector)];

// What Tab should come to: in the open dialog alone, if there is one; of radios of a name, one.
function stops() {
  const root = all('dialog[open]').at(-1) ?? document;
  const candidates = [
    ...root.querySelectorAll(
      'a[href], button, input, select, textarea, summary, output[tabindex], [tabindex], [contenteditable]'
    ),
  ];
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
  return [seen.outlineStyle === 'none' ? '' : `${seen.outlineStyle} ${seen.outlineWidth} ${seen.outlineColor}`,
    seen.boxShadow, seen.borderColor, seen.backgroundColor,
    around.outlineStyle === 'none' ? '' : `${around.outlineStyle} ${around.outlineColor}`, around.boxShadow,
    around.borderColor].join('|');
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

// Commands after which something that somebody works with is not there any more.
const ENDS_WORK = new RegExp('^(sudo )?svc ('
  + ['ws (stop|restart|delete|launcher stop|port remove)', 'ws shell .*--close', 'operation cancel',
    'image (delete|remove|prune)', 'template (delete|disable|context .*--remove)', 'fs rm', 'token revoke',
    'api DELETE'].join('|')
  + ') ');

const questions = {
  // Wait until nothing has changed for a while, or for long enough.
  unchanging() {
    let last = performance.now(), requests = -1;
    const begun = last, seen = () => {
      last = performance.now();
    };
    const observer = new MutationObserver(seen);
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    const timer = setInterval(() => {
      const now = performance.getEntriesByType('resource').length;
      if (now !== requests) {
        requests = now;
        seen();
      }
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
      done([found.reduce((sum, entry) => sum + entry.value, 0),
        (most?.sources ?? []).map(source =>
          source.node && source.node.nodeType === 1 ? named(source.node) : String(source.node?.textContent)
        ).slice(0, 3)]);
    }, 50);
  },
  wider() {
    const root = document.documentElement;
    const by = root.scrollWidth - root.clientWidth;
    if (by <= 0) return '';
    const out = all('body *').filter(node =>
      isSeen(node) && node.getBoundingClientRect().right > root.clientWidth + 0.5 && !node.closest('.vh')
    );
    return `by ${by} px: ${out.slice(-2).map(named).join('; ') || 'nothing seen'}`;
  },
  unnamed() {
    const nameOf = node =>
      (node.getAttribute('aria-label') || (node.getAttribute('aria-labelledby') ?? '').split(' ').map(id =>
        document.getElementById(id)?.textContent ?? ''
      ).join(' ') || [...node.childNodes].map(child =>
        child.textContent
      ).join(' ') || node.title).trim();
    return all('button, a[href], summary').filter(node => isSeen(node) && !nameOf(node)).map(node =>
      node.outerHTML.slice(0, 120)
    );
  },
  primaries() {
    return all('.primary').filter(node => isSeen(node) && !node.closest('dialog') && !node.closest('.notice')).map(
      named
    );
  },
  primaryOutOfSight() {
    return all('.primary').filter(node => isSeen(node) && !node.closest('dialog, .notice') && isHidden(node)).map(
      named
    );
  },
  commands() {
    return [...all('[data-cmd]').map(node => [named(node), node.dataset.cmd]),
      ...all('[data-command], .cmd code').filter(isSeen).map(node => [node.localName, node.textContent])];
  },
  // Follow the focus from now on; `walked` says where it came.
  walk() {
    window.svcWalk = { stops: stops(), seen: [], bad: [] };
    document.activeElement?.blur();
    const before = new Map(window.svcWalk.stops.map(node => [node, drawn(node)]));
    document.addEventListener('focusin', event => {
      const { seen, bad } = window.svcWalk, node = event.target;
      if (seen.includes(node)) {
        window.svcWalk.isRound = true;
        return;
      }
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
  // Buttons that end somebody's work and do not open a dialog first, or send a request before it is answered.
  async unasked() {
    const faults = [], pressed = new Map(), fetched = window.fetch;
    const isOpen = () => all('dialog[open]');
    const root = isOpen().at(-1) ?? document;
    const next = () =>
      [...root.querySelectorAll('button')].find(node => {
        const does = node.dataset.cmd ?? '',
          kind = `${node.textContent.trim().split(' ')[0]} ${node.className} ${node.closest('details') !== null}`;
        if (!node.matches('.danger') && !ENDS_WORK.test(does)) return false;
        if (node.closest('.ends, [data-refused], [hidden]')
          || node.matches('[aria-disabled], [aria-busy], [data-key=sign-out]') || (pressed.get(kind) ?? 0) >= 2)
          return false;
        const key = `${named(node)} ${does}`;
        return !pressed.has(key) && pressed.set(key, 1) && pressed.set(kind, (pressed.get(kind) ?? 0) + 1);
      });
    window.fetch = (url, options = {}) => {
      if ((options.method ?? 'GET') !== 'GET') faults.push(`sent without asking: ${options.method} ${url}`);
      return fetched(url, options);
    };
    for (let node = next(); node; node = next()) {
      const before = isOpen().length, what = named(node), end = performance.now() + 2000;
      node.click();
      while (isOpen().length <= before && performance.now() < end)
        await new Promise(resolve => setTimeout(resolve, 10));
      if (isOpen().length <= before) faults.push(`does not ask: ${what}`);
      for (const dialog of isOpen().slice(before)) dialog.close();
      await new Promise(resolve => setTimeout(resolve, 10));
    }
    window.fetch = fetched;
    done(faults);
  },
  // Words that a program says where it knows nothing; in what a person or a command has written, `null` may stand.
  holes() {
    const said = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const isWritten = node.parentElement.closest('code, pre, .mono, .cmd, [data-command], script, noscript');
      if (/\b(undefined|NaN)\b|\[object /.test(node.data) || (!isWritten && /\bnull\b/.test(node.data)))
        said.push(node.data.trim().slice(0, 80));
    }
    for (const node of all('body *'))
      for (const { name, value } of node.attributes) {
        if (/\b(undefined|NaN)\b|\[object /.test(value) || (name !== 'data-cmd' && value === 'null'))
          said.push(
            `${name}="${value.slice(0, 60)}"`
          );
      }
    return [...said,
      ...all('input, textarea, select').map(node => node.value).filter(value =>
        /\b(undefined|NaN)\b|^null$|\[object /.test(value)
      )];
  },
  markup() {
    return [...all('[onerror], [onload], img[src="x"]').map(node => node.outerHTML.slice(0, 100)),
      ...(window.svcHacked ? ['a script ran'] : [])];
  },
};
return questions[question]();
