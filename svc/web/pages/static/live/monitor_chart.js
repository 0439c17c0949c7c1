// One chart of the monitor: its present value, its course by uPlot where that is there, and the same as a table.
import { drawn, element } from '../frame/dom.js';
import { tableHead } from '../parts/tables.js';

const CHART_HEIGHT = 150, ROWS = 20;
const COLOURS = ['is-ok', 'is-busy', 'is-warn', 'muted'];
const DASHES = [[], [5, 4], [], [5, 4], [2, 3], [2, 3], [2, 3], [2, 3]];

const clock = seconds =>
  new Date(seconds * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit',
    hour12: false });
const shortClock = (seconds, span) => (span > 240 ? clock(seconds).slice(0, 5) : clock(seconds));

// The colour of a class, as this scheme has it.
function colourOf(node, name, property = 'color') {
  const probe = element('span', { class: name, hidden: true });
  node.append(probe);
  const colour = getComputedStyle(probe)[property];
  probe.remove();
  return colour;
}

// "171" for "171 GiB" beside "of 256 GiB".
function unitOnce(text, beside) {
  const at = text.lastIndexOf(' ');
  return at > 0 && beside.endsWith(text.slice(at)) ? text.slice(0, at) : text;
}

// `form(value)` is a value in words. `show` gets {times, lines: [{name, values}], most, from, to, now, unit}.
export function monitorChart({ title, form, hasKeys = false }) {
  const big = element('span.big', '–'), unit = element('span.muted.small.num');
  const plot = element('div.plot-box', { role: 'img', 'aria-label': title });
  const range = element('p.muted.tiny.num', 'no sample yet'),
    keys = element('div.row.keys', { hidden: !hasKeys });
  const table = element('div', { hidden: true });
  const node = element('figure.panel', element('header', element('h2', title), element('div.actions', big, unit)),
    element('div.body.stack-2', plot, keys, range, table));
  let drawnChart = null, names = '', colours = {}, visible = null;

  if (!window.uPlot) plot.hidden = true;
  else new ResizeObserver(() => drawnChart?.setSize({ width: plot.clientWidth, height: CHART_HEIGHT })).observe(plot);

  function show(course, asTable) {
    visible = course;
    const [first, ...rest] = course.lines;
    const last = line => line.values.at(-1);
    const brief = value => unitOnce(form(value), course.unit);
    big.textContent = first && last(first) !== null && last(first) !== undefined ? brief(last(first)) : '–';
    unit.textContent = [...rest.map(line => `and ${brief(last(line) ?? 0)}`), course.unit].filter(Boolean).join(' ');
    range.textContent = rangeOf(course);
    plot.setAttribute('aria-label', `${title}: ${big.textContent} ${unit.textContent}; ${range.textContent}`);
    const isNew = names !== course.lines.map(line => line.name).join('\n');
    names = course.lines.map(line => line.name).join('\n');
    if (isNew) showKeys();
    if (window.uPlot) draw(isNew, asTable);
    table.hidden = !asTable;
    table.replaceChildren(...(asTable ? [samplesTable(title, course, form)] : []));
  }

  function rangeOf({ times, lines, from }) {
    const begin = times.findIndex(time => time >= from);
    const seen = lines.flatMap(line => line.values.slice(begin < 0 ? 0 : begin)).filter(value =>
      value !== null && value !== undefined
    );
    if (!seen.length) return 'no sample yet';
    const lowest = seen.reduce((a, b) => Math.min(a, b)), highest = seen.reduce((a, b) => Math.max(a, b));
    return `lowest ${form(lowest)}, highest ${form(highest)}`;
  }

  function showKeys() {
    const { lines } = visible;
    keys.replaceChildren(
      ...(lines.length < 2
        ? []
        : lines.map(({ name }, at) =>
          element('span', { class: `row tiny ${COLOURS[at % 4]}` },
            drawn('svg', { class: 'sample', viewBox: '0 0 16 4', 'aria-hidden': true },
              drawn('line', { x1: 0, x2: 16, y1: 2, y2: 2, 'stroke-dasharray': DASHES[at % 8].join(' ') })),
            element('span.soft', name))
        ))
    );
  }

  function draw(isNew, asTable) {
    plot.hidden = asTable;
    if (asTable) return;
    if (isNew || !drawnChart) begin();
    drawnChart.setData([visible.times, ...visible.lines.map(line => line.values)]);
  }

  function begin() {
    drawnChart?.destroy();
    restyle();
    const line = (at, count) => ({ stroke: () => colours.lines[at % 4], width: 1.5, dash: DASHES[at % 8],
      points: { show: false }, fill: count === 1 ? () => colours.fill : undefined });
    const axis = { stroke: () => colours.text, font: `12px ${colours.font}`, ticks: { show: false },
      grid: { show: false } };
    drawnChart = new window.uPlot({
      width: plot.clientWidth,
      height: CHART_HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      padding: [8, 8, 0, 0],
      scales: { x: { time: false, range: () => [visible.from, visible.to] }, y: { range: () => [0, visible.most()] } },
      series: [{}, ...visible.lines.map((_, at) => line(at, visible.lines.length))],
      axes: [
        { ...axis, size: 24,
          splits: () =>
            (plot.clientWidth < 420 ? [0.15, 0.5, 0.85] : [0.06, 0.35, 0.64, 0.93]).map(part =>
              visible.from + (visible.to - visible.from) * part
            ), values: (_, splits) => splits.map(at => shortClock(at, visible.to - visible.from)) },
        { ...axis, size: 48, grid: { stroke: () => colours.rule, width: 1 },
          splits: () => [0, visible.most() / 2, visible.most()],
          values: (_, splits) => splits.map(value => String(Math.round(value * 10) / 10)) },
      ],
    }, [visible.times, ...visible.lines.map(({ values }) => values)], plot);
  }

  // The colours of this scheme: a canvas knows no style sheet.
  function restyle() {
    colours = {
      lines: COLOURS.map(name => colourOf(node, name)),
      text: colourOf(node, 'muted'),
      rule: colourOf(node, 'rule', 'backgroundColor'),
      fill: colourOf(node, 'chart-fill', 'backgroundColor'),
      font: getComputedStyle(node).fontFamily,
    };
    drawnChart?.redraw(false, true);
  }

  return { node, show, restyle };
}

// The newest samples, the last one first.
function samplesTable(title, { times, lines }, form) {
  const rows = times.map((_, at) => at).filter(at => lines.some(line => (line.values[at] ?? null) !== null)).slice(
    -ROWS
  ).reverse();
  const value = found => (found === null || found === undefined ? '–' : form(found));
  return element('div.scroll-x', { tabindex: '0', role: 'region', 'aria-label': `${title}, the newest samples` },
    element('table.table.dense', { 'aria-label': title }, tableHead(['Time', ...lines.map(line => line.name)]),
      element('tbody',
        rows.map(at =>
          element('tr', element('td.num', clock(times[at])), lines.map(line =>
            element('td.num', value(line.values[at]))
          ))
        ))));
}
