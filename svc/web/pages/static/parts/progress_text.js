// How far an operation under way is, in words.
import { commaList, duration, formatSize, gibibytes } from '../frame/format.js';

// The bytes, or which of its steps; `total` is known.
/** @param {Api.Operation['progress']} progress */
export function progressText({ current = 0, total, unit, rate, seconds_left: left, text }) {
  if (unit !== 'bytes') return `step ${current} of ${total}${text ? `: ${text}` : ''}`;
  return commaList(`${gibibytes(current)} of ${formatSize(total)}`, rate && `${Math.round(rate / 2 ** 20)} MiB/s`,
    left && `about ${duration(left)} left`);
}
