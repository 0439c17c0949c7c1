// Before the first paint: the colours that this browser's person has chosen; without a choice, the system's.
try {
  const theme = localStorage.getItem('svc.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* storage is closed: the system's colours */ }
