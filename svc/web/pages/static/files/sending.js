// A file sent with its progress, which fetch cannot tell over HTTP/1.1: the same headers and errors as in api.js.
import { Unreachable, ownHeaders, refusal, session } from '../frame/api.js';

// Resolves to the content of the answer; `progress` is told how many bytes have left.
export function upload(path, file, { progress, signal }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest(), { secret } = session;
    request.open('PUT', path);
    for (const [name, value] of Object.entries(ownHeaders())) request.setRequestHeader(name, value);
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.upload.addEventListener('progress', event => progress(event.loaded));
    request.addEventListener('error', () => reject(new Unreachable()));
    request.addEventListener('abort', () => reject(signal.reason));
    request.addEventListener('load', () => {
      const { status, responseText: text } = request;
      try {
        if (status >= 200 && status < 300) resolve(JSON.parse(text));
        else reject(refusal(status, text, request.getResponseHeader('Retry-After'), path, secret));
      } catch {
        reject(new Unreachable()); // it broke off
      }
    });
    signal.addEventListener('abort', () => request.abort(), { once: true });
    request.send(file);
  });
}
