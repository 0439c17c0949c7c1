// How far an operation under way is.
import { bar, element } from '../frame/dom.js';
import { commaList, duration, formatSize, gibibytes } from '../frame/format.js';

// How many bytes of how many, and a bar; nothing where it counts none.
/** @param {Api.Operation['progress']} progress */
export function loadedOf(progress, tag = 'p') {
  const { current = 0, total, unit, seconds_left: seconds } = progress ?? {};
  if (unit !== 'bytes' || !total) return [];
  const left = seconds ? `, about ${duration(seconds)} left` : '';
  return [element(`${tag}.muted.small.num`, `${gibibytes(current)} of ${gibibytes(total)} GiB${left}`),
    bar(current / total * 100, 'busy')];
}

// In words: the bytes, or which of its steps; `total` is known.
/** @param {Api.Operation['progress']} progress */
export function progressText({ current = 0, total, unit, rate, seconds_left: left, text }) {
  if (unit !== 'bytes') return `step ${current} of ${total}${text ? `: ${text}` : ''}`;
  return commaList(`${gibibytes(current)} of ${formatSize(total)}`, rate && `${Math.round(rate / 2 ** 20)} MiB/s`,
    left && `about ${duration(left)} left`);
}

// The operation as an event says that it is now.
export const movedOn = (operation, { status, phase, progress }) => ({ ...operation, status, phase,
  progress: progress ?? {} });
