// The screen of one shell: xterm.js with our colours and font, its size, its keys, and what is read aloud.
import { element } from '../frame/dom.js';
import { letXtermStyle } from './terminal_policy.js';

const SCROLLBACK = 5000, SIDE_MAX = 1000;
// What asks a terminal who it is, where its cursor is, or what its modes are: xterm.js answers as if it were typed.
const QUERIES = [
  { final: 'c' },
  { prefix: '>', final: 'c' },
  { prefix: '=', final: 'c' },
  { final: 'n' },
  { prefix: '?', final: 'n' },
  { intermediates: '$', final: 'p' },
  { prefix: '?', intermediates: '$', final: 'p' },
  { prefix: '>', final: 'q' },
];
const COLOUR_QUERIES = [4, 10, 11, 12];

let classes = null;

// The two classes of xterm.js; read once, and only by this page.
export async function loadXterm() {
  if (classes) return;
  letXtermStyle();
  const [{ Terminal }, { FitAddon }] = await Promise.all([import('./xterm.mjs'), import('./addon-fit.mjs')]);
  classes = { Terminal, FitAddon };
}

// `typed(bytes)`, `leave()` and `fits({cols, rows})`, when the room for it has changed.
export function terminalView({ label, id, tab, readsAloud, typed, leave, fits }) {
  const inner = element('div');
  const node = element('div.screen', { role: 'tabpanel', id, 'aria-labelledby': tab }, inner);
  const fit = new classes.FitAddon();
  let isReplay = false, term = null, timer = null;

  function open() { // once it is in the page and seen: only then it can be measured
    term = new classes.Terminal({ scrollback: SCROLLBACK, lineHeight: 1.2, minimumContrastRatio: 4.5,
      screenReaderMode: readsAloud, ...kindOfButton(node) });
    term.loadAddon(fit);
    term.open(inner);
    term.textarea.setAttribute('aria-label', `${label}. Control, Shift and Arrow up leave it.`);
    const encoder = new TextEncoder();
    term.onData(text => typed(encoder.encode(text)));
    term.onBinary(text => typed(Uint8Array.from(text, character => character.charCodeAt(0))));
    term.attachCustomKeyEventHandler(handleKey);
    for (const query of QUERIES) term.parser.registerCsiHandler(query, () => isReplay);
    for (const code of COLOUR_QUERIES) term.parser.registerOscHandler(code, text => isReplay && text.includes('?'));
    term.parser.registerDcsHandler({ intermediates: '$', final: 'q' }, () => isReplay);
    // Every other key is the shell's: neither the page's keys nor the palette's hear of it.
    node.addEventListener('keydown', event => event.stopPropagation());
    new ResizeObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        if (!node.hidden) fits(room());
      }, 100);
    }).observe(node);
  }

  function handleKey(event) {
    const { ctrlKey, shiftKey, altKey, metaKey, key, type } = event;
    if (ctrlKey && shiftKey && key === 'ArrowUp') {
      if (type === 'keydown') {
        event.preventDefault();
        leave();
      }
      return false;
    }
    if (ctrlKey && shiftKey && !altKey && !metaKey && key.toLowerCase() === 'c') {
      event.preventDefault();
      if (type === 'keydown' && term.hasSelection()) navigator.clipboard.writeText(term.getSelection()).catch(() => {});
      return false;
    }
    // The browser's own paste, which xterm.js takes up.
    return !(ctrlKey && shiftKey && key.toLowerCase() === 'v') && !(shiftKey && key === 'Insert');
  }

  // How many columns and rows there is room for.
  function room() {
    const found = fit.proposeDimensions();
    if (!found || !Number.isFinite(found.cols) || !Number.isFinite(found.rows))
      return { cols: term.cols, rows: term.rows };
    return { cols: Math.min(SIDE_MAX, found.cols), rows: Math.min(SIDE_MAX, found.rows) };
  }

  return {
    node,
    open,
    room,
    get size() {
      return { cols: term.cols, rows: term.rows };
    },
    resize({ cols, rows }) {
      if (cols !== term.cols || rows !== term.rows) term.resize(cols, rows);
    },
    write(bytes, done) {
      term.write(bytes, done);
    },
    // What was kept comes once more: what asked for an answer then has had it.
    begin(replays) {
      term.reset();
      isReplay = replays;
    },
    endReplay() {
      isReplay = false;
    },
    focus() {
      term.focus();
    },
    clear() {
      term.clear();
    },
    text() {
      return term.hasSelection() ? term.getSelection() : screenText(term);
    },
    readAloud(on) {
      term.options.screenReaderMode = on;
    },
    restyle() {
      Object.assign(term.options, kindOfButton(node));
    },
    remove() {
      term.dispose();
      node.remove();
    },
  };
}

// The lines that are seen, without the spaces at their ends.
function screenText({ buffer: { active }, rows }) {
  const lines = Array.from({ length: rows },
    (_, at) => active.getLine(active.viewportY + at)?.translateToString(true) ?? '');
  return `${lines.join('\n').trimEnd()}\n`;
}

// Font and colours as the style sheets have them, in this scheme.
function kindOfButton(node) {
  const style = getComputedStyle(node), token = name => style.getPropertyValue(name).trim();
  const [black, red, green, yellow, blue, magenta, cyan, white, brightBlack] = token('--ansi').split(/\s+/);
  return {
    fontFamily: style.fontFamily,
    fontSize: parseFloat(style.fontSize),
    theme: {
      background: style.backgroundColor,
      foreground: style.color,
      cursor: token('--term-accent'),
      cursorAccent: style.backgroundColor,
      selectionBackground: token('--term-selection'),
      black,
      red,
      green,
      yellow,
      blue,
      magenta,
      cyan,
      white,
      brightBlack,
      brightRed: red,
      brightGreen: green,
      brightYellow: yellow,
      brightBlue: blue,
      brightMagenta: magenta,
      brightCyan: cyan,
      brightWhite: token('--term-bright'),
    },
  };
}
