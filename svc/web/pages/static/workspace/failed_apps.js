// The apps that have ended in the first moments after a start, with the last lines of each.
import { element, notice } from '../frame/dom.js';
import { answer } from '../frame/notices.js';

export function failedApps({ name, launchers_failed: failed }) {
  const part = ({ name: launcher, exit_code: code, output }) => [
    element('p', 'Its app ', element('span.mono', launcher), ` has ended${code === null ? '' : ` with ${code}`}. `,
      element('a.small', {
        href: `/workspaces/${encodeURIComponent(name)}/logs?launcher=${encodeURIComponent(launcher)}`,
        cmd: ['ws logs', name, '--launcher', launcher],
      }, 'Its log')),
    output.length > 0
    && element('div.mono.tiny.ref', { 'data-output': true }, output.map(line => element('p', line))),
  ];
  return notice('warn', 'warning', { role: 'alert', tabindex: '-1' }, element('p', element('b', `${name} runs.`)),
    ...failed.flatMap(part),
    element('div.row', element('button.btn.sm.quiet', { key: 'dismiss', click: () => answer(null) }, 'Dismiss')));
}
