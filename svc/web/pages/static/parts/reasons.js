// Why a workspace has its status; the code itself stays in `title`.
const REASONS = {
  admin_stopped: 'stopped by an administrator',
  engine_error: 'the engine failed',
  gpu_unavailable: 'no free GPU',
  host_reboot: 'the host was rebooted',
  idle_policy: 'stopped: idle',
  oom_killed: 'killed by its memory limit',
  user_requested: '',
};

export function reason(code, exitCode) {
  if (code === 'container_exited')
    return exitCode === null
      ? 'its command ended'
      : `its command ended with ${exitCode}`;
  return code === null ? '' : REASONS[code] ?? code.replaceAll('_', ' ');
}
