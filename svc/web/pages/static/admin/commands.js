// The commands of the administration: the API's by `svc api`, the host's by `sudo svc admin`.

// One request as `svc api` sends it.
export const apiCommand = (method, path, body = null) => ['api', method, path, ['--body', body && json(body)]];

// JSON on one line, with room between its parts.
export function json(value) {
  return JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ');
}

// A list's path with these parameters; empty ones are left out.
export function withQuery(path, parameters) {
  const query = new URLSearchParams(
    Object.entries(parameters).filter(([, value]) => value !== '' && value !== null && value !== undefined)
  );
  const text = query.toString().replaceAll('+', '%20').replaceAll('%3A', ':').replaceAll('%2C', ',');
  return text ? `${path}?${text}` : path;
}

// Names that an account can have: no other comes into a command that root is to paste.
const NAME = /^(?![0-9]+$)[A-Za-z0-9_][A-Za-z0-9._@-]{0,255}$/, AFTER_RETIRED = /(:\d+){1,2}$/;

export const isName = name => NAME.test(name);

// A row's command for an account, with the options after its name.
export const adminCommand = (row, name, ...options) =>
  isName(name.replace(AFTER_RETIRED, '')) ? [row, name, ...options] : ['admin doctor'];
