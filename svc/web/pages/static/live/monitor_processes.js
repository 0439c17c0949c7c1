// The busiest processes of a workspace, by their numbers on the host, and the GPUs that each of them uses.
import { element, find, findAll, panel } from '../frame/dom.js';
import { gibibytes } from '../frame/format.js';
import { arrange } from '../parts/rows.js';
import { tableHead } from '../parts/tables.js';

const MIB = 2 ** 20, GIB = 2 ** 30;
export const memoryText = bytes => (bytes >= GIB / 10 ? `${gibibytes(bytes)} GiB` : `${Math.round(bytes / MIB)} MiB`);

export function processTable() {
  return panel('processes-h', 'Processes', element('span.muted.small.num', { 'data-process-count': true }),
    element('div.scroll-x', { tabindex: '0', role: 'region', 'aria-label': 'Busiest processes' },
      element('table.table.dense', { 'aria-label': 'Processes' },
        tableHead(['On the host', 'Command', ['CPU', 'r'], ['Memory', 'r'], 'GPU', ['GPU memory', 'r']]),
        element('tbody'))));
}

// Rows keep their places while the pointer or the focus is among them.
export function showProcesses(section, sample, gpuNumber) {
  const { processes, pids, pids_limit: most, more_processes: more } = sample;
  find('[data-process-count]', section).textContent = `${most === null ? `${pids}, no limit` : `${pids} of ${most}`}${
    more ? '; the busiest' : ''
  }`;
  find('table', section).classList.toggle('no-gpu-use', sample.gpus.length === 0);
  const body = find('tbody', section);
  const old = new Map(findAll('tr', body).map(row => [row.dataset.pid, row]));
  const rows = processes.map(one => rowOfProcess(one, sample.gpus, gpuNumber, old.get(String(one.pid))));
  if (!body.matches(':hover') && !body.contains(document.activeElement)) {
    arrange(body, rows);
    return;
  }
  for (const row of old.values()) if (!rows.includes(row)) row.remove();
  body.append(...rows.filter(row => !row.isConnected));
}

function rowOfProcess({ pid, command, cpu_percent: cpu, memory_bytes: memory }, gpus, gpuNumber, old) {
  const used = gpus.flatMap(gpu =>
    gpu.processes.filter(one => one.pid === pid).map(one => ({ number: gpuNumber(gpu.uuid), bytes: one.used_bytes }))
  );
  const texts = [String(pid), command, `${Math.round(cpu)} %`, memoryText(memory),
    used.map(one => one.number).join(' '),
    used.length ? memoryText(used.reduce((sum, one) => sum + (one.bytes ?? 0), 0)) : ''];
  const joined = texts.join('\n');
  if (old?.dataset.text === joined) return old;
  const kinds = ['mono small', 'mono small', 'r', 'r', null, 'r'];
  const row = old ?? element('tr', { 'data-pid': String(pid) });
  row.dataset.text = joined;
  row.replaceChildren(
    ...texts.map((text, at) =>
      element('td', { class: kinds[at] }, at !== 4
        ? element('bdi', text)
        : element('span.gpus', used.map(one => element('span.chip-n', one.number))))
    )
  );
  return row;
}
