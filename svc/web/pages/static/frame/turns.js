// Timing of reads and renderings: debounced, one at a time, or delayed.

// Debounce `call`: once, `ms` after the last request for it.
export function delayed(call, ms = 100) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, ms);
  };
}

// Serialise `read`; calls during a run coalesce into one more run.
export function oneAtATime(read) {
  let reading = null, isDue = false;
  return async () => {
    if (reading) {
      isDue = true;
      return reading;
    }
    reading = (async () => {
      do {
        isDue = false;
        await read();
      } while (isDue);
    })();
    try {
      await reading;
    } finally {
      reading = null;
    }
    return null;
  };
}

// Call `show` after 150 ms, unless the returned function is called before.
export function afterAMoment(show) {
  const timer = setTimeout(show, 150);
  return () => clearTimeout(timer);
}
