// Server-sent events, read by fetch: EventSource cannot send the session's header.

// Read an answer to its end; `take` gets {name, data, id, retry} of each event, `onData` is called whenever
// anything has come, comments too.
export async function readEvents(response, { take, onData = () => {} }) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = '';;) {
    const { value, done } = await reader.read();
    if (done) return;
    onData();
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) take(eventOf(block));
  }
}

function eventOf(block) {
  const found = { name: 'message', data: '', id: '', retry: null };
  for (const text of block.split('\n')) {
    const [, field, value] = /^([^:]*): ?(.*)$/.exec(text) ?? [];
    if (field === 'event') found.name = value;
    else if (field === 'data') found.data += value;
    else if (field === 'id') found.id = value;
    else if (field === 'retry') found.retry = Number(value);
  }
  return found;
}
