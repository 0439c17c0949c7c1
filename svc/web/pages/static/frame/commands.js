// Command lines. A command is a list: a row of the table of actions, or the words after `svc`, then its arguments.

/**
 * A command as text, each argument quoted. Those that a row names come first; one that is not known yet is its name in
 * capitals. Of the others an option and its value are a list of their own; what is empty or false is left out. Of
 * several commands in a list each is done after the other. A text stays as it is.
 * @param {any} command
 * @returns {string}
 */
export function commandText(command) {
  if (!Array.isArray(command)) return command;
  if (command.every(part => !part || Array.isArray(part))) return command.filter(Boolean).map(commandText).join(' && ');
  const [first, ...values] = command, own = first.command ?? `${first.startsWith('admin') ? 'sudo ' : ''}svc ${first}`;
  const [start, input] = own.split(' <<< ').map(text =>
    text.replace(/(?:(--\S+) )?\{(\w+)\}/g, (_, flag, name) => optionText(flag, values.shift() || name.toUpperCase()))
  );
  const texts = values.map(value => Array.isArray(value) ? optionText(...value) : optionText('', value));
  return [start, ...texts.filter(Boolean)].join(' ') + (input ? ` <<< ${input}` : '');
}

// '' without a value; one that begins with - must not look like another option.
function optionText(flag, value) {
  if (!value && value !== 0) return '';
  return flag ? `${flag}${/^-./.test(value) ? '=' : ' '}${quoted(value)}` : quoted(value);
}

// An argument, quoted where a shell would take it apart; what is not seen by its bytes, as svc itself writes it. One
// that has been quoted already is an object, { quoted }.
export function quoted(argument) {
  if (argument.quoted) return argument.quoted;
  const text = String(argument);
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (!/[^\P{C}\n\t]|[\u2028\u2029]/u.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
  return `$'${
    text.replace(/[\p{C}\u2028\u2029'\\]/gu, char =>
      Array.from(new TextEncoder().encode(char), byte => `\\x${byte.toString(16).padStart(2, '0')}`).join(''))
  }'`;
}
