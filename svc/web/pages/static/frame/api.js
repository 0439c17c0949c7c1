// The one place that sends requests: the session's header, versions, errors as what they say.
import { byName } from './format.js';

const KEY = 'svc.session'; // the secret half of the session that scripts may read; the other is a cookie

export const session = {
  get secret() {
    return localStorage.getItem(KEY);
  },
  begin(secret) {
    localStorage.setItem(KEY, secret);
  },
  end() {
    localStorage.removeItem(KEY);
  },
};

// What the API refuses: its own message, hint and action.
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {Partial<Api.ErrorInner>} error
   * @param {number | null} retryAfter seconds; null where the same request would fail again
   */
  constructor(status, error, retryAfter) {
    super(error.message);
    this.code = error.code;
    this.fields = error.fields ?? [];
    this.hint = error.hint ?? '';
    this.action = error.action ?? null;
    this.details = error.details ?? {};
    this.retryable = error.retryable ?? false;
    this.request_id = error.request_id ?? '';
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

// No answer at all: the service does not answer, or the network.
export class Unreachable extends Error {
  constructor() {
    super('The service does not answer.');
    Object.assign(this, { code: 'unreachable', hint: '', action: null, fields: [], retryable: true, request_id: '',
      retryAfter: 4 });
  }
}

const watchers = { signedOut: [], unreachable: [] };
export const onSignedOut = listener => watchers.signedOut.push(listener);
export const onUnreachable = listener => watchers.unreachable.push(listener);

/**
 * What every request says: who asks, and whether a person or the page by itself.
 * @returns {Record<string, string>}
 */
export function ownHeaders(background = false) {
  return { ...(session.secret && { 'X-Svc-Session': session.secret }), ...(background && { 'X-Svc-Background': '1' }) };
}

/**
 * @typedef {object} Options
 * @property {any} [body] sent as JSON; a Blob as it is, with its own type
 * @property {string} [ifMatch]
 * @property {boolean} [background] for what a page asks by itself: no use of the session
 * @property {AbortSignal} [signal]
 * @property {{type: string, after?: string}} [accept]
 */

/**
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 */
export async function send(method, path, { body, ifMatch, background = false, signal, accept } = {}) {
  const headers = ownHeaders(background), { secret } = session;
  if (ifMatch) headers['If-Match'] = ifMatch;
  if (accept) headers.Accept = accept.type;
  if (accept?.after) headers['Last-Event-ID'] = accept.after;
  const isFile = body instanceof Blob, hasBody = body !== undefined && body !== null;
  if (hasBody && !isFile) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal,
      cache: 'no-store',
      redirect: 'error',
      credentials: 'same-origin',
      body: isFile ? body : hasBody ? JSON.stringify(body) : undefined,
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    for (const listener of watchers.unreachable) listener();
    throw new Unreachable();
  }
  if (!response.ok) await refuse(response, secret);
  return response;
}

/**
 * The content of the answer; null for none.
 * @template {string} M
 * @template {string} P
 * @param {M} method
 * @param {P} path
 * @param {Options} [options]
 * @returns {Promise<Api.Reply<M, P>>}
 */
export async function call(method, path, options) {
  const response = await send(method, path, options);
  return response.status === 204 ? null : read(response);
}

async function read(response) {
  try {
    return await response.json();
  } catch {
    throw new Unreachable(); // it broke off
  }
}

async function refuse(response, secret) {
  const text = await response.text().catch(() => '');
  throw refusal(response.status, text, response.headers.get('Retry-After'), response.url, secret);
}

// The refusal that an answer is; that a session has ended is told to the frame. Only of the session that is:
// the answer to one that has been replaced meanwhile ends nothing.
export function refusal(status, text, retryAfter, url, secret) {
  let error;
  try {
    ({ error } = JSON.parse(text));
  } catch {
    error = { code: `http_${status}`, message: `The answer was ${status}, without a reason.` };
  }
  const found = new Refusal(status, error, retryAfter !== null && Number(retryAfter) >= 0 ? Number(retryAfter) : null);
  if (status === 401 && secret === session.secret && !url.endsWith('/api/auth/login')) {
    for (const listener of watchers.signedOut) listener(found);
  }
  return found;
}

/**
 * What each of several requests came to: `value`, or `error`.
 * @template {unknown[]} T
 * @param {{[I in keyof T]: Promise<T[I]>}} requests
 * @returns {Promise<{[I in keyof T]: {value?: T[I], error?: any}}>}
 */
export const outcomes = requests => /** @type {any} */ (Promise.all(
  requests.map(request => request.then(value => ({ value }), error => ({ error })))
));

/**
 * All items of a list, page after page.
 * @template {string} P
 * @param {P} path
 * @param {Options} [options]
 * @returns {Promise<Api.Item<P>[]>}
 */
export async function all(path, options) {
  const items = [];
  for (let offset = 0; offset !== null;) {
    /** @type {{items: any[], next_offset: number | null}} */
    const page = await call('GET', `${path}${path.includes('?') ? '&' : '?'}limit=200&offset=${offset}`, options);
    items.push(...page.items);
    offset = page.next_offset ?? null;
  }
  return /^\/api\/(workspaces|templates)\?sort=name/.test(path) ? items.sort((a, b) => byName(a.name, b.name)) : items;
}
