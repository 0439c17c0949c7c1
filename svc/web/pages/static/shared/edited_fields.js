// The keys of a workspace's record as its forms call them, where the audit says what was edited.

const WORDS = {
  command: 'command',
  display_name: 'title',
  env: 'variables',
  gpu_use_case: 'level',
  network: 'network',
  resources: 'size',
  restart_on_boot: 'start after a reboot',
};

// "size, variables"; '' where no key says anything to a person: replace_container is how it was done.
export const editedWords = keys =>
  [...new Set((Array.isArray(keys) ? keys : []).map(key => WORDS[key]).filter(Boolean))].join(', ');
