// The form of a new workspace: its fields, what is recommended beside each, and what is wrong with one.
import { element, find, findAll } from '../frame/dom.js';
import { counted } from '../frame/format.js';
import { field, fieldOf, showErrors, plainInput } from '../parts/form.js';
import { showGpuFields } from '../parts/gpu_fields.js';
import { RESOURCES, formatAmount, textOf } from './values.js';

export const LEVELS = {
  none: ['None', 'No GPUs.'],
  light: ['Light', 'One GPU, shared where the template allows it.'],
  standard: ['Standard', "The template's own number of GPUs, at least one."],
  heavy: ['Heavy', 'Half of the GPUs that are free.'],
  max: ['Max', 'All that your quota and this host allow now.'],
};

let onHost = { hasGpus: true, missing: [] };

// `host` says whether it has GPUs, and which limits it cannot apply.
export function formOf(host, on) {
  onHost = host;
  const levels = element('div.seg.two.wide',
    Object.entries(LEVELS).map(([level, [title]]) =>
      element('label', element('input', { type: 'radio', name: 'level', value: level, on: { change: () =>
        on.level(level) } }), title, element('small', { 'data-level': level }, '\u00a0'))
    ));
  const mode = element('select.input', ['exclusive', 'shared'].map(value => element('option', { value }, value)));
  const restart = element('input', { type: 'checkbox', name: 'boot', 'data-field': 'restart_on_boot', key: 'boot' });
  const resource = (key, label, unit, more = {}) =>
    field(`resources.${key}`, label, plainInput('num', { inputmode: 'decimal' }), { help: '', unit, ...more });
  const sizes = element('details.more', { key: 'more-size' }, element('summary', { 'data-sizes': true }),
    element('div.form-grid', resource('shm_bytes', 'Shared memory', 'GiB', { wide: 'w2' }),
      resource('pids_limit', 'Processes', '', { wide: 'w2', optional: true })));
  return [
    element('div.section', { role: 'radiogroup', 'aria-labelledby': 'l-lvl', 'aria-describedby': 'h-lvl',
      hidden: !host.hasGpus }, element('h2', { id: 'l-lvl' }, 'What will the GPUs do?'), levels,
      element('p.help', { id: 'h-lvl' })),
    element('div.section',
      element('div.row.between', element('h2', 'Size'),
        element('button.btn.link.small', { hidden: true, 'data-back': true, click: on.recommended },
          'Back to the recommended values')),
      element('div.form-grid', resource('gpu_count', 'GPUs', ''),
        field('resources.gpu_mode', 'Mode', mode, { help: '' }), resource('cpu_limit', 'CPUs', 'cores'),
        resource('memory_bytes', 'Memory', 'GiB')), sizes),
    element('div.section',
      element('div.form-grid',
        field('name', 'Name', plainInput('mono', { maxlength: 63 }), { wide: 'w2',
          help: 'a-z, 0-9 and -; you can rename it at any time' }),
        field('display_name', 'Title', plainInput('', { maxlength: 128, spellcheck: null, autocapitalize: null }), {
          optional: true,
          wide: 'w2',
        })), element('label.check', restart, element('span', 'Start it again after the host has rebooted')),
      advanced(on)),
  ];
}

// What is folded away: it is built when it is unfolded first.
function advanced(on) {
  const rows = kind => element('div.field.stack-2', { 'data-rows': kind, 'data-field': kind, tabindex: '-1' });
  return element('details.more', { 'data-rest': true, on: { toggle: on.more } }, element('summary'),
    element('div.stack-4', rows('env'), rows('ports'), element('div.stack-2', { 'data-template-facts': true })));
}

// ---- reading ----

// What the form says now, as texts; a row in which nothing is written is none.
/** @param {Api.Template} template */
export function textsOf(form, template) {
  const numbered = kind => {
    const all = [];
    for (const row of findAll(`[data-rows="${kind}"] > .form-row`, form)) {
      const inputs = findAll('[data-part]', row);
      const values = Object.fromEntries(
        inputs.map(input => [input.dataset.part, input.dataset.part === 'value' ? input.value : input.value.trim()])
      );
      const isFilled = values.name || values.value || values.container_port;
      for (const input of inputs) input.dataset.field = isFilled ? `${kind}.${all.length}.${input.dataset.part}` : '';
      if (isFilled) all.push(values);
    }
    return all;
  };
  const texts = { template: template?.id ?? '', name: fieldOf(form, 'name').value.trim(),
    displayName: fieldOf(form, 'display_name').value.trim() };
  for (const key of Object.keys(RESOURCES)) texts[key] = fieldOf(form, `resources.${key}`).value.trim();
  return Object.assign(texts, {
    mode: fieldOf(form, 'resources.gpu_mode').value,
    defaultMode: template?.defaults.gpu_mode ?? 'exclusive',
    env: numbered('env'),
    ports: numbered('ports'),
    network: find('[data-field=network]', form)?.value.trim() ?? '',
    command: find('[data-field=command]', form)?.value ?? '',
    restartOnBoot: fieldOf(form, 'restart_on_boot').checked,
  });
}

export function setResources(form, resources) {
  for (const key of Object.keys(RESOURCES)) fieldOf(form, `resources.${key}`).value = textOf(key, resources[key]);
  fieldOf(form, 'resources.gpu_mode').value = resources.gpu_mode;
}

// ---- what is said beside the fields ----

/** @param {Api.Template} template */
export function showTemplate(form, template) {
  const mode = fieldOf(form, 'resources.gpu_mode');
  const isShared = template.gpu.allow_shared || template.defaults.gpu_mode === 'shared';
  find('[value=shared]', mode).disabled = !isShared;
  if (!isShared) mode.value = 'exclusive';
  helpOf(form, 'resources.gpu_mode', isShared ? 'shared: beside other workspaces' : 'the template does not share');
}

function helpOf(form, name, text) {
  const help = find('.help', fieldOf(form, name).closest('.field'));
  if (help.textContent !== text) help.textContent = text;
}

// What is recommended at this level beside each field, and the most that the template allows; the fields of GPUs.
export function showRecommended(form, resources, limits, gpus) {
  showGpuFields(name => fieldOf(form, `resources.${name}`).closest('.field'), onHost.hasGpus, gpus);
  for (const key of Object.keys(RESOURCES)) {
    const text = [];
    if (resources && (resources[key] ?? null) !== null)
      text.push(`recommended ${formatAmount(key, resources[key]).replace(' GiB', '')}`);
    if ((limits[key] ?? null) !== null) text.push(`at most ${formatAmount(key, limits[key]).replace(' GiB', '')}`);
    if (onHost.missing.includes(key)) text.push('not applied on this host');
    helpOf(form, `resources.${key}`, text.join(', ') || (key === 'pids_limit' ? 'no limit without a number' : ''));
  }
}

export function showLevels(form, level, levels) {
  for (const [name, found] of levels) {
    const { gpu_count: count, gpu_mode: mode } = found.resources;
    const text = count === 0 ? 'no GPU' : `${counted(count, 'GPU')}${mode === 'shared' ? ', shared' : ''}`;
    find(`[data-level="${name}"]`, form).textContent = found.allocatable_now ? text : `${text}, not now`;
  }
  const chosen = find(`[name=level][value="${level}"]`, form);
  if (chosen) chosen.checked = true;
  else for (const input of findAll('[name=level]', form)) input.checked = false;
  find('#h-lvl', form).textContent = `${
    level ? `${LEVELS[level][1]} ` : ''
  }The sizes below follow; change what you know better.`;
}

// The words of what is folded away: what is in it.
export function showFolded(form, texts, body) {
  const { shm_bytes: shm, pids_limit: pids } = body.resources ?? {};
  const most = value => value === undefined ? null : value;
  find('[data-sizes]', form).textContent = `Shared memory ${
    most(shm) === null ? "as the template's" : shm === 'unlimited' ? 'without limit' : formatAmount('shm_bytes', shm)
  }, ${
    most(pids) === null || pids === 'unlimited'
      ? 'no process limit of its own'
      : `at most ${counted(pids, 'process', 'processes')}`
  }`;
  const parts = [texts.env.length && counted(texts.env.length, 'variable'),
    texts.ports.length && counted(texts.ports.length, 'port'), texts.network && 'a network',
    texts.command.trim() && 'a command'].filter(Boolean);
  find('[data-rest] > summary', form).textContent = `Variables, ports, network and command: ${
    parts.join(', ') || 'none'
  } besides the template's`;
}

// ---- what is wrong ----

// Show what is wrong with each field; returns the first control that has something, and what has no field here.
export const showWrong = (form, wrong) =>
  showErrors(form, [...wrong].map(([name, message]) => ({ field: name, message })));
