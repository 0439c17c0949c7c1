// How far an operation under way is.
import { bar, element } from '../frame/dom.js';
import { duration, gibibytes } from '../frame/format.js';

// How many bytes of how many, and a bar; nothing where it counts none.
/** @param {Api.Operation['progress']} progress */
export function loadedOf(progress, tag = 'p') {
  const { current = 0, total, unit, seconds_left: seconds } = progress ?? {};
  if (unit !== 'bytes' || !total) return [];
  const left = seconds ? `, about ${duration(seconds)} left` : '';
  return [element(`${tag}.muted.small.num`, `${gibibytes(current)} of ${gibibytes(total)} GiB${left}`),
    bar(current / total * 100, 'busy')];
}

// The operation as an event says that it is now.
export const movedOn = (operation, { status, phase, progress }) => ({ ...operation, status, phase,
  progress: progress ?? {} });
