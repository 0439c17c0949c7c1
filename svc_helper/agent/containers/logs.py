"""Send the kept output of a container or a launcher over the app's data stream: `ctr.logs`.

A conversation: the agent tells what is kept, the app says go, and the bytes follow as the
program wrote them, both streams in one. Read from files, which needs no Podman and works for
a stopped workspace. Neither the size of the output nor that of a line is limited in memory.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable

from svc_helper.agent import paths
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.home import Home
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import conmon_log, log_files
from svc_helper.agent.runtime.log_files import Files, Position
from svc_helper.wire.limits import LOG_MARKER_MAX, LOG_MARKERS_MAX
from svc_helper.wire.quick_typing import Any


def logs(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Send the last `tail` lines, at most `most` bytes, or all that is kept.

    With `times` each line has its time before it. With `start`, a position of an earlier
    answer, it begins there instead; the first `skip` bytes are left out. Progress {"start",
    "older_gone", "truncated", "markers"}: `older_gone` if output that was asked for is no
    longer kept, `truncated` if `most` left some out, `markers` as [bytes of output before it,
    text]. Then {"go": true}, the bytes,
    and {"sent"}.
    """
    stream = call.data_stream("output")
    try:
        with open_files(podman.home, args) as files:
            return {"sent": _converse(call, files, args, stream)}
    except ConnectionError:
        raise Failure("cancelled", "the caller has gone") from None
    finally:
        os.close(stream)  # before the reply is sent: its reader meets the end


def open_files(home: Home, args: dict[str, Any]) -> Files:
    """The kept output of the container, or of a launcher; empty if it never ran."""
    if args["launcher"] is not None:
        return Files(paths.launchers(home.home, args["id"]), args["launcher"])
    directory = paths.output(home.home, args["id"])
    conmon_log.arrange(directory)
    return Files(directory, conmon_log.NAME)


def _converse(call: Call, files: Files, args: dict[str, Any], stream: int) -> int:
    start, truncated = _find_start(call, files, args)
    times = bool(args["times"])
    call.progress(
        {
            "start": list(start),
            "older_gone": files.first.number > 0 and start == files.first,
            "truncated": truncated,
            "markers": [] if args["launcher"] is None else _markers(call, files, start, times),
        },
        wait=True,
    )
    call.receive("go")
    return _send(call, files, start, args["skip"], stream, log_files.renderer(times=times))


def _find_start(call: Call, files: Files, args: dict[str, Any]) -> log_files.Start:
    if args["start"] is None:
        before_line = log_files.TIMED if args["times"] else 0
        return log_files.find_start(files, args["tail"], args["most"], call.check, before_line)
    start = Position(args["start"]["number"], args["start"]["offset"])
    if not files.first <= start <= files.end:
        raise Failure("conflict", "the output is no longer kept from there on")
    return log_files.Start(start, False)


def _markers(call: Call, files: Files, start: Position, times: bool) -> list[list[Any]]:
    """The newest markers, each with the bytes of output before it."""
    count, output_of = 0, log_files.renderer(times=times)
    found: list[list[Any]] = []
    for rows in files.forward(start, files.end):
        call.check()
        for kind, text in log_files.pieces_of(rows, output_of):
            if kind == log_files.MARKER:
                found.append([count, text[:LOG_MARKER_MAX].decode(errors="replace")])
                del found[:-LOG_MARKERS_MAX]
            else:
                count += len(text)
    return found


def _send(
    call: Call,
    files: Files,
    start: Position,
    skip: int,
    stream: int,
    output_of: Callable[[bytes], bytes],
) -> int:
    sent = 0
    for rows in files.forward(start, files.end):
        rest = memoryview(output_of(rows))
        skipped = min(skip, len(rest))
        skip -= skipped
        rest = rest[skipped:]
        call.check()
        while rest:
            try:
                count = os.write(stream, rest)
            except BlockingIOError:
                call.wait({stream: select.POLLOUT})
                continue
            sent += count
            rest = rest[count:]
    return sent
