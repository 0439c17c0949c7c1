// What the form says, without the form: texts become a request, the command that sends the same, and amounts.
import { amount } from '../frame/format.js';
import { WORKSPACE_EDIT, WORKSPACE_SETUP, WORKSPACE_START } from '../generated/actions.js';
import { WRONG_COMMAND, argumentsOf } from '../parts/own_command.js';
import { shText } from '../parts/shell_text.js';
import { bytesOf, decimalOf, wholeOf } from '../parts/amounts.js';

const MIB = 2 ** 20, GIGA = 2 ** 30;
const SLUG = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const WRONG_SLUG = 'Use a-z, 0-9 and - (inside), at most 63.';
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/;
const RESERVED = ['capacity', 'check', 'recommend', 'setup'];
export const UNLIMITED = 'unlimited';

// Bytes as the field has them; it reads the very same number back.
function textOfBytes(bytes) {
  const text = String(bytes / GIGA);
  if (text.length <= 6 && bytesOf(text) === bytes) return text;
  return bytes % MIB === 0 ? `${bytes / MIB}m` : `${bytes}b`;
}

// Bytes as the command line has them.
function sizeOf(bytes) {
  if (bytes % GIGA === 0) return `${bytes / GIGA}g`;
  return bytes % MIB === 0 ? `${bytes / MIB}m` : String(bytes);
}

const PLAIN = { parse: wholeOf, text: String, argument: String, isBounded: false };
const SIZE = { parse: bytesOf, text: textOfBytes, argument: sizeOf, isBounded: false,
  wrong: 'Use a number of GiB, or one with a unit, such as 512m.' };

// The resources: key of the API, option of the command line, and the forms of a value.
export const RESOURCES = {
  cpu_limit: { ...PLAIN, option: '--cpus', parse: decimalOf, wrong: 'Use a number of cores, such as 4 or 0.5.' },
  memory_bytes: { option: '--memory', ...SIZE },
  shm_bytes: { option: '--shm-size', ...SIZE },
  pids_limit: { option: '--pids', ...PLAIN, wrong: 'Use a wholeOf number.' },
  gpu_count: { option: '--gpu-count', ...PLAIN, wrong: 'Use a wholeOf number.', isBounded: true },
};

export const textOf = (key, value) =>
  value === null || value === undefined ? '' : value === UNLIMITED ? UNLIMITED : RESOURCES[key].text(value);
export const formatAmount = (key, value) =>
  value === null
    ? 'no limit'
    : key.endsWith('_bytes')
    ? `${amount(Math.round(value / GIGA * 10) / 10)} GiB`
    : amount(value);

// The texts of a form as a request: { body, wrong }; `wrong` has a message for each field that is none.
export function requestOf(form, takenNames) {
  const wrong = new Map(), resources = {}, body = { template: form.template, name: form.name };
  const problem = problemOfName(form.name, takenNames);
  if (problem) wrong.set('name', problem);
  if (form.displayName) body.display_name = form.displayName;
  for (const [key, { parse, wrong: message, isBounded }] of Object.entries(RESOURCES)) {
    const text = form[key];
    if (text === '') continue;
    const value = text === UNLIMITED && !isBounded ? UNLIMITED : parse(text);
    if (Number.isNaN(value)) wrong.set(`resources.${key}`, message);
    else resources[key] = value;
  }
  if (form.mode && (resources.gpu_count !== 0 || form.mode !== form.defaultMode)) resources.gpu_mode = form.mode;
  if (Object.keys(resources).length) body.resources = resources;
  if (form.env.length) body.env = form.env;
  if (form.ports.length)
    body.ports = form.ports.map(({ name, container_port: number, kind, user, access }) => ({ name,
      ...number && { container_port: wholeOf(number) }, access, ...kind !== 'http' && { kind }, ...user && { user } })
    );
  if (form.network) body.network = form.network === 'none' ? null : form.network;
  const command = argumentsOf(form.command);
  if (command === undefined) wrong.set('command', WRONG_COMMAND);
  else if (command) body.command = command;
  if (form.restartOnBoot) body.restart_on_boot = true;
  checkRows(form, wrong);
  return { body, wrong };
}

export function problemOfName(name, taken) {
  if (name === '') return 'Give it a name.';
  if (!SLUG.test(name)) return WRONG_SLUG;
  if (RESERVED.includes(name)) return 'This name is reserved.';
  return taken.has(name) ? `You have a workspace ${name}.` : '';
}

function checkRows({ env, ports, network }, wrong) {
  if (network && !SLUG.test(network)) wrong.set('network', WRONG_SLUG);
  env.forEach(({ name }, at) => {
    if (!VARIABLE.test(name))
      wrong.set(`env.${at}.name`, 'Use A-Z, a-z, 0-9, _, . and -, at most 128; begin with a letter or _.');
    else if (env.findIndex(other => other.name === name) < at) wrong.set(`env.${at}.name`, `${name} is listed twice.`);
  });
  ports.forEach(({ name, container_port: number }, at) => {
    if (!SLUG.test(name)) wrong.set(`ports.${at}.name`, WRONG_SLUG);
    else if (ports.findIndex(other => other.name === name) < at)
      wrong.set(`ports.${at}.name`, `${name} is listed twice.`);
    if (number && !(wholeOf(number) >= 1 && wholeOf(number) <= 65535))
      wrong.set(`ports.${at}.container_port`, 'Use a number from 1 to 65535.');
  });
}

// ---- the command line ----

// The command that sends the same; what is no value yet stands in it as it was typed.
export function setupCommand(form, body, templateArgument, { start = true } = {}) {
  const unlimited = {}, later = {}, { resources = {} } = body;
  const sizes = Object.entries(RESOURCES).map(([key, { option, argument }]) => {
    const value = resources[key];
    if (value === UNLIMITED) unlimited[key] = UNLIMITED;
    return [option, value === undefined ? form[key] : value !== UNLIMITED && argument(value)];
  });
  const command = body.command ? shText(body.command) : form.command.trim() && form.command;
  if (command === null) later.command = body.command;
  if (Object.keys(unlimited).length) later.resources = unlimited;
  return [
    [WORKSPACE_SETUP, templateArgument, form.name, ['--display-name', form.displayName], ...sizes, ['--gpu-mode',
      resources.gpu_mode], ...form.env.map(({ name, value }) => ['--env', `${name}=${value}`]),
      ...form.ports.map(port => ['--port', portArgument(port)]), ['--network', form.network], ['--command', command],
      form.restartOnBoot && '--restart-on-boot'],
    Object.keys(later).length > 0
    && [WORKSPACE_EDIT, form.name, JSON.stringify(later), later.command && '--replace-container'],
    start && [WORKSPACE_START, form.name],
  ];
}

// NAME[=PORT][/KIND[@USER]][:ACCESS]
function portArgument({ name, container_port: number, kind, user, access }) {
  const behind = kind === 'http' && !user ? '' : `/${kind}${user ? `@${user}` : ''}`;
  return `${name}${number ? `=${number}` : ''}${behind}${access === 'host' ? ':host' : ''}`;
}

// ---- amounts ----

// What a workspace of this request takes once it runs; null is no limit. The template fills what is left out.
export function requestedOf(resources, { defaults, limits }) {
  const one = key => {
    const value = resources[key] ?? defaults[key] ?? null;
    return value === null || value === UNLIMITED ? limits[key] ?? null : value;
  };
  return { gpus: resources.gpu_count ?? defaults.gpu_count ?? 0, cpu: one('cpu_limit'),
    memory_bytes: one('memory_bytes'), running: 1 };
}
