// The fields of GPUs: on a host without any there is no question of them, unless some are asked for.

/** @param {Api.Capacity} capacity */
export const hasGpus = capacity => capacity.host.gpus > 0;

// `fieldOf` gives the field of a resource; `wanted` is how many GPUs are asked for.
export function showGpuFields(fieldOf, isWithGpus, wanted) {
  for (const name of ['gpu_count', 'gpu_mode']) fieldOf(name).hidden = !isWithGpus && !wanted;
}
