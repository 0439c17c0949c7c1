// The icons: one path each, on 16 by 16; the shells draw the same ones.
export const ICONS = {
  "activity": "M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM8 4.5V8l2.5 1.5",
  "close": "M3.5 3.5l9 9M12.5 3.5l-9 9",
  "copy": "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3",
  "files": "M1.5 12.5v-9h4.5l1.5 2h7v7z",
  "images": "M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z",
  "lock": "M3.5 7h9v7h-9zM5.5 7V4.5a2.5 2.5 0 0 1 5 0V7",
  "menu": "M2 4.5h12M2 8h12M2 11.5h12",
  "more": "M3.5 8h.01M8 8h.01M12.5 8h.01",
  "plus": "M8 3v10M3 8h10",
  "search": "M7 12.5a5.5 5.5 0 1 1 0-11 5.5 5.5 0 0 1 0 11ZM11 11l3.5 3.5",
  "settings": "M2 4.5h5M11 4.5h3M2 11.5h3M9 11.5h5M9 2.5v4M7 9.5v4",
  "start": "M4.5 3v10l8-5z",
  "stop": "M4 4h8v8H4z",
  "templates": "M8 2 14 5.2 8 8.4 2 5.2ZM2.5 8.2 8 11.2l5.5-3M2.5 11 8 14l5.5-3",
  "terminal": "M1.5 3h13v10h-13zM4.5 6l2 2-2 2M8 10.5h3",
  "warning": "M8 2 14.5 13.5h-13ZM8 6.5V10M8 11.8h.01",
  "workspaces": "M2.5 3.5h11v9h-11zM5 6.5l2 1.75L5 10M8.5 10.5h2.5"
};
