"""The child process that compresses an archive: `igzip`, `pigz` (on several processors), or else `gzip`.

It reads from a pipe of the agent and writes into the app's data stream, so that no
thread of the agent blocks on either.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
from contextlib import suppress

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.process import Process

PROGRAMS = ("/usr/bin/igzip", "/usr/bin/pigz", "/usr/bin/gzip", "/bin/gzip")  # the first that exists is used
_LEVEL = "-4"  # on source code about half the work of the default 6, for 5 % more bytes
_IGZIP_LEVEL = "-3"  # its highest: an eighth of the default 6's work, for 1 to 15 % more bytes
_THREADS_MAX = 8  # of pigz, which would otherwise use every processor, and memory for each
_PIPE = 1024 * 1024
_EXIT_S = 10  # for a killed process to exit


class Compressor:
    """One run. `pipe` takes the data to compress; wait for room in it with Call.wait() only."""

    def __init__(self, output: int) -> None:
        """Start the process. `output` stays open until close(), to find out whether its reader has gone."""
        argv = _argv()
        self._ended = False
        self._output = output
        reads, self.pipe = os.pipe2(os.O_CLOEXEC)
        try:
            os.set_blocking(output, True)  # the program cannot wait; the app's end has its own flags
            self._process = _spawn(argv, reads, output)
        except OSError:
            os.close(self.pipe)
            raise
        finally:
            os.close(reads)
        os.set_blocking(self.pipe, False)
        with suppress(OSError):  # the user's limit on pipe buffers is reached; a small pipe is slower
            fcntl.fcntl(self.pipe, fcntl.F_SETPIPE_SZ, _PIPE)

    def finish(self, call: Call) -> None:
        """Wait until everything is compressed and sent; raises Failure otherwise."""
        os.close(self.pipe)
        self.pipe = -1
        call.wait({self._process.pidfd: select.POLLIN})
        if status := self._reap():
            raise self._failure(call, status)

    def failure(self, call: Call) -> Failure:
        """The reason why the process has closed its end of the pipe."""
        call.wait({self._process.pidfd: select.POLLIN})
        return self._failure(call, self._reap())

    def _reap(self) -> int:
        self._ended = True
        return self._process.ended() or 0

    def _failure(self, call: Call, status: int) -> Failure:
        reader = select.poll()
        reader.register(self._output, 0)
        if reader.poll(0):  # POLLHUP or POLLERR
            return Failure("cancelled", "the caller has gone")
        call.log("the compressor failed", "error", status=status)
        return Failure("failed", "the archive could not be compressed; the agent's log has the exit status")

    def close(self) -> None:
        """Kill the process unless it has exited."""
        if not self._ended:  # before its input ends, or it would complete a truncated archive
            signal.pidfd_send_signal(self._process.pidfd, signal.SIGKILL)
            self._process.wait(_EXIT_S)
            self._reap()
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1


def _argv() -> list[str]:
    program = next((path for path in PROGRAMS if os.access(path, os.X_OK)), "")
    if not program:
        raise Failure("failed", "this host has none of igzip, pigz and gzip")
    if program.endswith("igzip"):
        return [program, _IGZIP_LEVEL, "-n"]  # one thread, which outruns the agent
    threads = ["-p", str(min(_THREADS_MAX, len(os.sched_getaffinity(0))))] if program.endswith("pigz") else []
    return [program, _LEVEL, "-n", *threads]


def _spawn(argv: list[str], reads: int, output: int) -> Process:
    actions = [
        (os.POSIX_SPAWN_DUP2, reads, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
    ]
    # With the default action of SIGPIPE, which Python ignores, so that it exits when nobody reads.
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    pid = os.posix_spawn(
        argv[0], argv, environment, file_actions=actions, setsid=True, setsigdef=[signal.SIGPIPE]
    )
    try:
        return Process(pid)
    except OSError:  # too many open files; without a pidfd nothing would wait for it
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
