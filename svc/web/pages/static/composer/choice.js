// What is proposed: a level, a name; and what a template is called.

// A template for GPUs names what it needs of them; one that does not gets none until they are asked for.
export function levelFor({ gpu, defaults }, host) {
  const needs = defaults.gpu_count || gpu.min_vram_bytes || gpu.min_cuda || gpu.min_compute_capability;
  return host.gpus > 0 && needs ? 'standard' : 'none';
}

export function freeName(name, taken) {
  const stem = name.slice(0, 56).replace(/-+$/, '');
  for (let number = 1;; number++) if (!taken.has(`${stem}-${number}`)) return `${stem}-${number}`;
}

// What the template is called on a command line: its name where that means no other.
/** @param {Api.Template} template */
export function argumentOfTemplate(template, all) {
  if (!template) return '';
  return all.filter(one => [one.name, one.id].includes(template.name)).length > 1 ? template.id : template.name;
}
