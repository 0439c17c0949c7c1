"""The process that compresses an archive: `pigz`, which uses several processors, or else `gzip`.

It reads from a pipe of the agent's and writes into the app's, so that no thread
of the agent's waits for either.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.process import Process

PROGRAMS = ("/usr/bin/pigz", "/usr/bin/gzip", "/bin/gzip")  # the first that is there
_NICE = "10"  # below whatever else the user does
_LEVEL = "-5"  # a third less work than the usual 6 on programs' sources, and a hundredth more bytes
_THREADS_MAX = 8  # of pigz; it would take every processor of a great host, and memory for each
_PIPE = 1024 * 1024
_END_S = 10  # for a killed process


class Compressor:
    """One run; `pipe` takes what is to be compressed and is never to be waited for but in Call.wait()."""

    def __init__(self, output: int) -> None:
        """Start it; `output` is its own afterwards, and may be closed here."""
        argv = _argv()
        self._ended = False
        reads, self.pipe = os.pipe2(os.O_CLOEXEC)
        try:
            os.set_blocking(output, True)  # it knows no other way; the reader's end has a flag of its own
            self._process = _spawn(argv, reads, output)
        except OSError:
            os.close(self.pipe)
            raise
        finally:
            os.close(reads)
        os.set_blocking(self.pipe, False)
        try:
            fcntl.fcntl(self.pipe, fcntl.F_SETPIPE_SZ, _PIPE)
        except OSError:
            pass  # the user has many already; a small one is slower

    def finish(self, call: Call) -> None:
        """Wait until everything is compressed and written; Failure if it did not come to that."""
        os.close(self.pipe)
        self.pipe = -1
        call.wait({self._process.pidfd: select.POLLIN})
        status = self._reap()
        if status:
            raise self._failure(call, status)

    def failure(self, call: Call) -> Failure:
        """Why it takes no more."""
        call.wait({self._process.pidfd: select.POLLIN})
        return self._failure(call, self._reap())

    def _reap(self) -> int:
        status = self._process.ended() or 0
        self._ended = True
        return status

    def _failure(self, call: Call, status: int) -> Failure:
        if status == -signal.SIGPIPE:
            return Failure("cancelled", "the caller has gone")
        call.log("the compressor failed", "error", status=status)
        return Failure("failed", "the archive could not be compressed; the agent's log has more")

    def close(self) -> None:
        """End it, if it has not ended."""
        if not self._ended:  # before its input ends: it would make something whole of what it has
            signal.pidfd_send_signal(self._process.pidfd, signal.SIGKILL)
            self._process.wait(_END_S)
            self._reap()
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1


def _argv() -> list[str]:
    program = next((path for path in PROGRAMS if os.access(path, os.X_OK)), "")
    if not program:
        raise Failure("failed", "this host has neither pigz nor gzip")
    threads = ["-p", str(min(_THREADS_MAX, len(os.sched_getaffinity(0))))] if program.endswith("pigz") else []
    return ["/usr/bin/nice", "-n", _NICE, program, _LEVEL, "-n", *threads]


def _spawn(argv: list[str], reads: int, output: int) -> Process:
    actions = [
        (os.POSIX_SPAWN_DUP2, reads, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
    ]
    # With SIGPIPE as usual again (Python ignores it), so that it ends when nobody reads.
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    pid = os.posix_spawn(
        argv[0], argv, environment, file_actions=actions, setsid=True, setsigdef=[signal.SIGPIPE]
    )
    try:
        return Process(pid)
    except OSError:  # too many files are open: nobody would wait for it
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
