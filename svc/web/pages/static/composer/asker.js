// Questions that follow the typing: a moment after the last key, and only the newest answer counts.
const QUIET_MS = 150;

// `send(options, isNewest)` asks and takes the answer; what the service puts off is asked again by itself.
export function asker(send) {
  let number = 0, timer = null, controller = null;
  return function soon({ background = false, wait = QUIET_MS } = {}) {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++number;
      controller?.abort();
      controller = new AbortController();
      const isNewest = () => mine === number;
      try {
        await send({ background, signal: controller.signal }, isNewest);
      } catch (error) {
        if (error.name === 'AbortError' || !isNewest()) return;
        if (error.retryable || typeof error.retryAfter === 'number')
          soon({ background, wait: (error.retryAfter ?? 4) * 1000 });
      }
    }, wait);
  };
}
