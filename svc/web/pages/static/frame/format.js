// Times, amounts and states in words: as the command line prints them.
import { element, findAll } from './dom.js';

const MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR, GIB = 2 ** 30;

export function duration(seconds) {
  if (seconds < MINUTE) return `${Math.max(0, Math.floor(seconds))} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < DAY) {
    const minutes = Math.floor(seconds % HOUR / MINUTE);
    return `${Math.floor(seconds / HOUR)} h${minutes ? ` ${minutes} min` : ''}`;
  }
  return `${Math.floor(seconds / DAY)} d`;
}

// Today, yesterday, or the date; the year where it is another one.
function dayOf(date) {
  const midnight = new Date().setHours(0, 0, 0, 0), year = new Date().getFullYear();
  if (date >= midnight && date < midnight + DAY * 1000) return 'today';
  if (date < midnight && date >= new Date(midnight - DAY * 500).setHours(0, 0, 0, 0)) return 'yesterday';
  return date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short',
    ...(date.getFullYear() !== year && { year: 'numeric' }) });
}

// What is to come in days is rounded up, as the command line does: within seven days is never "in 8 d".
const wholeDays = seconds => seconds < DAY ? seconds : Math.ceil(seconds / DAY) * DAY;
const since = date => (Date.now() - date.getTime()) / 1000;
const FORMS = {
  age: date => duration(since(date)),
  ago: date => since(date) < 5 ? 'just now' : `${duration(since(date))} ago`,
  until: date => duration(wholeDays(Math.max(0, -since(date)))),
  day: date => `${dayOf(date)}, ${FORMS.clock(date)}`,
  clock: date => date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false }),
  date: dayOf,
};

// A time in words, exact in UTC in its title; refreshTimes keeps the words true.
export function time(iso, form) {
  const date = new Date(iso);
  const exact = `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  return element('time', { datetime: date.toISOString(), title: exact, 'data-form': form }, FORMS[form](date));
}

export function refreshTimes(root = document) {
  for (const node of findAll('time[data-form]', root)) {
    const text = FORMS[node.dataset.form](new Date(node.dateTime));
    if (node.textContent !== text) node.textContent = text;
  }
}

export function amount(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}

export function gibibytes(bytes) {
  return amount(Math.round(bytes / GIB * 10) / 10);
}

// In GiB, as sizes of workspaces are; what is little by its own unit.
export function formatSize(bytes) {
  return bytes > 0 && bytes < GIB / 10 ? byteSize(bytes) : `${gibibytes(bytes)} GiB`;
}

export function formatSizeOf(bytes, most) {
  return `${bytes > 0 && bytes < GIB / 10 ? byteSize(bytes) : gibibytes(bytes)} of ${formatSize(most)}`;
}

// Bytes as the command line prints them: 212 B, 3.1 KiB, 13.4 GiB.
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function byteSize(bytes) {
  let unit = 0, value = bytes;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : amount(Math.round(value * 10) / 10)} ${UNITS[unit]}`;
}

// "2 GPUs, 4 CPUs": those parts that there are.
export const commaList = (...parts) => parts.filter(Boolean).join(', ');

export function counted(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

// The order of names, for sort: base-2 before base-10.
export const byName = new Intl.Collator('en', { numeric: true }).compare;
