// When something is read or shown: soon, one at a time, or after a moment.

// `call`, a moment after the last of several wishes for it.
export function delayed(call, ms = 100) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, ms);
  };
}

// `read`, one at a time: calls that come meanwhile are one more reading.
export function oneAtATime(read) {
  let reading = null, isWanted = false;
  return async () => {
    if (reading) {
      isWanted = true;
      return reading;
    }
    reading = (async () => {
      do {
        isWanted = false;
        await read();
      } while (isWanted);
    })();
    try {
      await reading;
    } finally {
      reading = null;
    }
    return null;
  };
}

// `show`, unless the function that is given back is called before.
export function afterAMoment(show) {
  const timer = setTimeout(show, 150);
  return () => clearTimeout(timer);
}

// The first reading: bones after a moment, then what came or why not. That the session has ended the frame says.
export async function readFirst(read, { loading, show, fail }) {
  const ready = afterAMoment(loading);
  try {
    const found = await read();
    ready();
    show(found);
  } catch (error) {
    ready();
    if (error.status !== 401) fail(error);
  }
}
