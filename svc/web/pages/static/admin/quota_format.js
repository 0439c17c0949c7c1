// Amounts of quotas: bytes as GiB where they are so, and as the command line takes them.
import { amount } from '../frame/format.js';

/** @type {[string, number, string][]} */
const UNITS = [['TiB', 2 ** 40, 't'], ['GiB', 2 ** 30, 'g'], ['MiB', 2 ** 20, 'm'], ['KiB', 2 ** 10, 'k']];

// As it is read: the largest unit in which it is at least one, with a decimal where it has one.
export function bytesOf(bytes) {
  const [text, size] = UNITS.slice(1).find(([, size]) => bytes >= size) ?? ['B', 1, ''];
  return `${amount(Math.round(bytes / size * 10) / 10)} ${text}`;
}

// As --memory and --images take it: exact.
export function sizeOf(bytes) {
  const [, size, letter] = UNITS.find(([, size]) => bytes >= size && bytes % size === 0) ?? ['', 1, ''];
  return `${bytes / size}${letter}`;
}
