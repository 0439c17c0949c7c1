// The resources of a workspace as texts of a form, and back: what is empty is the template's default.
import { WRONG_COMMAND, argumentsOf, textOfCommand } from '../parts/own_command.js';
import { bytesOf, decimalOf, wholeOf } from '../parts/amounts.js';

const GIB_OF = 2 ** 30;
export const NO_LIMIT = 'unlimited';

const SIZE = { text: bytes => String(bytes / GIB_OF), parse: bytesOf, unit: 'GiB',
  wrong: 'Use a number of GiB, one with a unit such as 512m, or unlimited.' };
export const SIZES = {
  gpu_count: { label: 'GPUs', text: String, parse: wholeOf, wrong: 'Use a whole number.', isBounded: true },
  cpu_limit: { label: 'CPUs', text: String, parse: decimalOf, unit: 'cores',
    wrong: 'Use a number of cores such as 4 or 0.5, or unlimited.' },
  memory_bytes: { label: 'Memory', ...SIZE },
  shm_bytes: { label: 'Shared memory', ...SIZE },
  pids_limit: { label: 'Processes', text: String, parse: wholeOf, wrong: 'Use a whole number, or unlimited.' },
};

// What the form shows of a record, by the names of the fields.
export function textsOf({ display_name: title, resources, restart_on_boot: onBoot, env, network, command }) {
  const texts = { command: textOfCommand(command), display_name: title, restart_on_boot: onBoot,
    env: JSON.stringify(env.map(({ name, value }) => ({ name, value }))), 'resources.gpu_mode': resources.gpu_mode,
    network: network ?? '' };
  for (const [name, { text }] of Object.entries(SIZES))
    texts[`resources.${name}`] = resources[name] === null || resources[name] === undefined
      ? NO_LIMIT
      : text(resources[name]);
  return texts;
}

// What is different in the texts, as the API takes it: { patch, wrong }.
export function patchOf(texts, base) {
  const patch = {}, wrong = [];
  for (const name of ['display_name', 'restart_on_boot']) if (texts[name] !== base[name]) patch[name] = texts[name];
  if (texts.network.trim() !== base.network) patch.network = texts.network.trim() || null;
  if (texts.command !== base.command) takeCommand(texts.command, base.command, patch, wrong);
  if (texts.env !== base.env) patch.env = JSON.parse(texts.env);
  for (const name of [...Object.keys(SIZES), 'gpu_mode']) {
    const text = texts[`resources.${name}`];
    if (text === base[`resources.${name}`]) continue;
    const value = valueOf(name, text.trim());
    if (Number.isNaN(value)) wrong.push({ field: `resources.${name}`, message: SIZES[name].wrong });
    else patch.resources = { ...patch.resources, [name]: value };
  }
  return { patch, wrong };
}

function takeCommand(text, before, patch, wrong) {
  const command = argumentsOf(text);
  if (command === undefined) wrong.push({ field: 'command', message: WRONG_COMMAND });
  else if (JSON.stringify(command) !== JSON.stringify(argumentsOf(before))) patch.command = command;
}

function valueOf(name, text) {
  if (name === 'gpu_mode') return text;
  if (text === '') return null;
  return text === NO_LIMIT && !SIZES[name].isBounded ? NO_LIMIT : SIZES[name].parse(text);
}

// A field in words, for what has changed elsewhere.
export function describe(name, texts) {
  const value = texts[name], key = name.replace('resources.', '');
  if (name === 'env') return JSON.parse(value).map(variable => variable.name).join(', ') || 'none';
  if (name === 'command') return value ? value.replaceAll('\n', ' ') : "the template's";
  if (name === 'restart_on_boot') return value ? 'yes' : 'no';
  return value === ''
    ? key in SIZES ? "the template's default" : 'none'
    : `${value}${SIZES[key]?.unit && value !== NO_LIMIT ? ` ${SIZES[key].unit}` : ''}`;
}

export const FIELD_LABELS = {
  display_name: 'Title',
  restart_on_boot: 'Started after a reboot',
  env: 'Variables',
  network: 'Network',
  command: 'Command',
  'resources.gpu_mode': 'Mode',
  ...Object.fromEntries(Object.entries(SIZES).map(([name, { label }]) => [`resources.${name}`, label])),
};
