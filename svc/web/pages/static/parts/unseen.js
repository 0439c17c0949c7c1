// Text that people write, made to show all that is in it.

// Characters that are not seen, or turn around what stands beside them.
export const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// Text in which nothing is unseen, and nothing turns around what stands beside it.
export function spelledOut(text) {
  return text.replace(UNSEEN,
    char => char === '\n' ? '\\n' : char === '\t' ? '\\t' : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
