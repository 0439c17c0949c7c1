// The fields of GPUs: on a host without any there is no question of them, unless some are asked for.

/** @param {Api.Capacity} capacity */
export const hasGpus = capacity => capacity.host.gpus > 0;

// `fieldOf` gives the field of a resource; `requested` is the number of GPUs.
export function showGpuFields(fieldOf, isWithGpus, requested) {
  for (const name of ['gpu_count', 'gpu_mode']) fieldOf(name).hidden = !isWithGpus && !requested;
}
