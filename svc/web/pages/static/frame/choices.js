// What the person has chosen for this browser: colours and single keys. Kept in the origin's storage; other tabs
// follow.

const choosers = [];
export const onChoice = listener => choosers.push(listener); // colours or keys have changed, here or in another tab

// system, light or dark
export const theme = () => document.documentElement.dataset.theme ?? 'system';

export function chooseTheme(name) {
  localStorage.setItem('svc.theme', name);
  wear(name);
}

export const hasSingleKeys = () => localStorage.getItem('svc.keys') !== 'off';

export function chooseSingleKeys(isOn) {
  localStorage.setItem('svc.keys', isOn ? 'on' : 'off');
  for (const listener of choosers) listener();
}

function wear(name) {
  if (name === 'light' || name === 'dark') document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  for (const listener of choosers) listener();
}

window.addEventListener('storage', event => {
  if (event.key === 'svc.theme') wear(event.newValue);
  else if (event.key === 'svc.keys') { for (const listener of choosers) listener(); }
});
