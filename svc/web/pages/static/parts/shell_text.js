// The command of a workspace's own, as a shell has it.
import { quoted } from '../frame/commands.js';

// The arguments as one line of a shell.
export const shellText = command => command.map(quoted).join(' ');

// The same as --command takes it, which is a line for sh; null for a command without sh.
export const shText = command => command.length === 3 && command[0] === 'sh' && command[1] === '-c' ? command[2] : null;
