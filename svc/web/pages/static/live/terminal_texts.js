// What is said below a shell: its connection, or why it has ended, and what can be done about it.
import { element, stateMark } from '../frame/dom.js';

const REASONS = {
  closed: 'It was closed.',
  idle: 'It was closed after a day without use.',
  stopped: 'It ended with the workspace.',
  lost: 'It is lost: the process that held it was killed.',
  gone: 'It is no longer there.',
};

const mark = (kind, ...text) => stateMark(kind, element('span', ...text));
const link = (label, click, key) => element('button.btn.link.tiny', { key, click }, label);

// {key, content}: what has the same key says the same, and is not written anew.
export function statusText(shell, { runs, again, close, now }) {
  const status = shell?.link?.status ?? { name: 'none' };
  const { name } = status;
  const ended = name === 'ended' ? endText(status) : '';
  const key = [shell?.id, name, status.nextAt, ended, status.message, runs].join(' ');
  const forms = {
    none: () => [mark('stopped', 'No shell is open'), runs && link('Open one', again, 'again')],
    connecting: () => [mark('busy', 'Connecting')],
    open: () => [mark('ok', 'Connected')],
    waiting: () => [
      mark('busy', 'The connection is gone; trying again ',
        element('span.num', { 'aria-hidden': true, 'data-in': true })),
      link('Now', now, 'now'),
    ],
    restarting: () => [mark('busy', 'The service restarts; the shell goes on meanwhile')],
    behind: () => [mark('busy', 'More output than this page can show; going on with the newest')],
    'signed-out': () => [mark('warn', 'Signed out; the shell goes on')],
    refused: () => [mark('failed', status.message), link('Try again', now, 'now')],
    ended: () => [mark('stopped', ended), runs && link('Another shell', again, 'again'), link('Close', close, 'close')],
  };
  return { key, content: forms[name]().filter(Boolean) };
}

function endText({ reason, exitCode }) {
  if (reason === 'exited')
    return exitCode === null
      ? 'Its program has ended.'
      : `Its program has ended with exit code ${exitCode}.`;
  return REASONS[reason] ?? 'It has ended.';
}
