// Typed amounts as numbers; NaN where a text is none.
const FACTORS = { b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

export const wholeOf = text => /^\d{1,15}$/.test(text) ? Number(text) : NaN;
export const decimalOf = text => /^(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : NaN;

// A number of GiB, or one with a unit, as the command line takes it: 32, 1.5, 512m, 32GiB.
export function bytesOf(text) {
  const [, number, unit] = /^(\d+\.?\d*|\.\d+) ?(?:([kmgt])(?:i?b)?|b)?$/i.exec(text) ?? [];
  const factor = unit ? FACTORS[unit.toLowerCase()] : /b$/i.test(text) ? 1 : FACTORS.g;
  return number === undefined ? NaN : Math.trunc(Number(number) * factor);
}
