// The icons of several screens: one path each, on 16 by 16; the shells draw the same ones, and their own for places.
export const ICONS = {
  check: 'M3 8.5 6.5 12 13 4.5',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  copy: 'M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3',
  download: 'M8 2.5v8M4 7l4 4 4-4M2.5 13.5h11',
  info: 'M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM8 7.5V11M8 5h.01',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  open: 'M6.5 3H3v10h10V9.5M9 2.5h4.5V7M13 3 7.5 8.5',
  plus: 'M8 3v10M3 8h10',
  search: 'M7 12.5a5.5 5.5 0 1 1 0-11 5.5 5.5 0 0 1 0 11ZM11 11l3.5 3.5',
  start: 'M4.5 3v10l8-5z',
  stop: 'M4 4h8v8H4z',
  upload: 'M8 13V3M4 6.5l4-4 4 4M2.5 13.5h11',
  warning: 'M8 2 14.5 13.5h-13ZM8 6.5V10M8 11.8h.01',
};
