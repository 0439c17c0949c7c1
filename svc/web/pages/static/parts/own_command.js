// The command of a workspace's own, as the text of a field.

// A command of its own as lines, one for each argument; as a JSON list where an argument is none, or it would be read
// as one.
export function textOfCommand(command) {
  if (command === null) return '';
  const isPlain = command.every(argument => /^\S(.*\S)?$/.test(argument)) && !command[0].startsWith('[');
  return isPlain ? command.join('\n') : JSON.stringify(command);
}

// The arguments of such a text: null is the template's command; undefined for a text that is none.
export function argumentsOf(text) {
  const whole = text.trim();
  if (whole === '') return null;
  if (!whole.startsWith('[')) {
    const lines = whole.split('\n').map(line => line.trim());
    return lines.includes('') ? undefined : lines;
  }
  try {
    const list = JSON.parse(whole);
    return list.length > 0 && list.every(argument => typeof argument === 'string') ? list : undefined;
  } catch {
    return undefined;
  }
}

export const WRONG_COMMAND =
  'Use one argument a line without empty lines, or a JSON list such as ["sh", "-c", "echo a"].';
