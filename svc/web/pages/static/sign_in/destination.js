// Where the person was going, as the address of the sign-in screen says it: a path of this service, and nothing else.
export function destinationOf(address) {
  const { origin, searchParams } = new URL(address);
  const next = searchParams.get('next') ?? '';
  if (!/^\/(?![/\\])/.test(next)) return '/workspaces';
  let url;
  try {
    url = new URL(next, origin);
  } catch {
    return '/workspaces';
  }
  // What is left of dots may begin with two slashes, which the browser would read as another host.
  const isOwn = url.origin === origin && !url.pathname.startsWith('//') && url.pathname !== '/sign-in';
  return isOwn ? url.pathname + url.search : '/workspaces';
}
