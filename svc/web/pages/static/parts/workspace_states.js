// The states of workspaces and of what sets them up, in words.
export const MOVING = { creating: 'Creating', starting: 'Starting', stopping: 'Stopping', deleting: 'Deleting' };
export const PHASES = { pulling: 'Pulling its image', queued: 'Waiting to pull its image', creating: 'Creating',
  copying: 'Copying its image', checking: 'Looking for its image' };

// Whether the idle policy runs: null, or when it began and when it acts.
export function idleOf({ status, idle }) {
  if (status !== 'running' || !idle?.since || idle.action === 'none' || idle.after_minutes === null) return null;
  if (idle.keep_until && new Date(idle.keep_until) > new Date()) return null;
  return { since: idle.since, action: idle.action, after: idle.after_minutes * 60,
    ends: new Date(Date.parse(idle.since) + idle.after_minutes * 60_000).toISOString() };
}
