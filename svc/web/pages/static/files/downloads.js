// Downloads by a plain link with a one-time ticket: the browser writes to the disk as the bytes come.
import { call, send } from '../frame/api.js';
import { element } from '../frame/dom.js';
import { apiOf } from './paths.js';

// Resolves to how many entries an archive leaves out; what the service refuses is thrown before anything is loaded.
export async function download(root, path, verb) {
  const url = apiOf(root, verb, path);
  const answer = await headOf(url);
  const link = element('a', { href: await ticketed(url), download: '', hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  return Number(answer.headers.get('X-Svc-Archive-Skipped') ?? 0);
}

export async function ticketed(url) {
  return (await call('POST', '/api/tickets', { body: { url } })).url;
}

// An answer to HEAD has no reason in it: the same GET is refused for the same one.
async function headOf(url) {
  try {
    return await send('HEAD', url);
  } catch (error) {
    if (!error.status || error.status === 401) throw error;
    const stop = new AbortController();
    const answer = await send('GET', url, { signal: stop.signal });
    stop.abort();
    return answer;
  }
}
