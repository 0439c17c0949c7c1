// The keys of a workspace's record as its forms call them, where the audit says what was edited.

const LABELS = {
  command: 'command',
  display_name: 'title',
  env: 'variables',
  gpu_use_case: 'level',
  network: 'network',
  resources: 'size',
  restart_on_boot: 'start after a reboot',
};

// "size, variables"; '' where no key says anything to a person: replace_container is how it was done.
export const editedText = keys =>
  [...new Set((Array.isArray(keys) ? keys : []).map(key => LABELS[key]).filter(Boolean))].join(', ');
