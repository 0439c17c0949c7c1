"""The pull program: pulls one image, outlives the agent, holds the lock that a repeated call waits for.

Argv: the image, the lock file, and the file of the host's login (empty for none).
Descriptor 3 is a connection to Podman. Reports go to standard output
(background.py); the pull continues when nobody reads them. SIGTERM closes the
connection, on which Podman stops the pull in good order.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress

from svc_helper.agent.calls import Failure
from svc_helper.agent.images import logins, pull_cleanup
from svc_helper.agent.images.background import report, report_failure
from svc_helper.agent.podman import causes
from svc_helper.agent.podman.http import Wire, not_understood, whole
from svc_helper.agent.podman.podman import COMPAT
from svc_helper.wire import strict_json
from svc_helper.wire.quick_typing import Any

SILENCE_S = 600  # "a pull may last; ten minutes without a byte may not"
REPORT_S = 0.25
_LINE_MAX = 64 * 1024
_LAYERS_MAX = 4096
_DEPTH_MAX = 8  # of a report; Podman's have two levels


def lock_path(own: str, image: str) -> str:
    """The lock file of an image; images whose names share a checksum wait for each other."""
    return f"{own}/locks/pull-{zlib.crc32(image.encode()):08x}"


class Layers:
    """Download progress of one image's layers."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[int, int]] = {}
        self.text = ""

    def note(self, untrusted: dict[str, Any]) -> None:
        """Note one report of Podman: {"id", "status", "progressDetail": {"current", "total"}}."""
        layer, detail = untrusted.get("id"), untrusted.get("progressDetail")
        if isinstance(untrusted.get("status"), str):
            self.text = untrusted["status"][:100]
        if not isinstance(layer, str) or not isinstance(detail, dict) or len(self.known) >= _LAYERS_MAX:
            return
        current, total = detail.get("current"), detail.get("total")
        if type(current) is int and type(total) is int and current >= 0 and 0 <= total < 2**53:
            self.known[layer] = (min(current, total), total)
        elif self.text == "Download complete" and layer in self.known:
            self.known[layer] = (self.known[layer][1],) * 2

    def progress(self) -> dict[str, Any]:
        """The sum over all layers."""
        current = sum(current for current, _ in self.known.values())
        total = sum(total for _, total in self.known.values())
        return {"current": current, "total": total, "unit": "bytes", "text": self.text}


def objects(parts: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    """Parse a stream of JSON objects, one per line."""
    buffer = b""
    for part in parts:
        *lines, buffer = (buffer + part).split(b"\n")
        if len(buffer) > _LINE_MAX:
            raise not_understood()
        yield from (_object(line) for line in lines if line.strip())
    if buffer.strip():
        yield _object(buffer)


def _object(line: bytes) -> dict[str, Any]:
    try:
        return strict_json.load_object(line, depth_max=_DEPTH_MAX)
    except strict_json.Malformed:
        raise not_understood() from None


def _refusal(untrusted: bytes) -> str:
    """The words of a response that is no success: text, or from Podman 5 on {"message": TEXT}."""
    with suppress(strict_json.Malformed):
        message = strict_json.load_object(untrusted, depth_max=_DEPTH_MAX).get("message")
        if isinstance(message, str):
            return message
    return untrusted.decode(errors="replace")


def failure(untrusted_reason: str, image: str) -> Failure:
    """The Failure for a pull or inspection that Podman or skopeo gave up with this message."""
    return Failure(*causes.of_registry(untrusted_reason, image), untrusted_reason)


def pull(sock: socket.socket, image: str, login: str = "") -> Iterator[dict[str, Any]]:
    """Pull over a connection to Podman; yields progress, raises Failure."""
    poller = select.poll()

    def wait(mask: int) -> None:
        poller.register(sock, mask)
        if not poller.poll(SILENCE_S * 1000):
            raise Failure("timeout", "the registry sent nothing for ten minutes")

    layers = Layers()
    next_report = 0.0
    with Wire(sock, wait) as wire:
        wire.send("POST", f"{COMPAT}/images/create?fromImage={image}", login=logins.header(login, image))
        status, parts = wire.answer()
        if status != 200:
            raise failure(_refusal(whole(parts, _LINE_MAX)), image)
        for status_report in objects(parts):
            if status_report.get("error"):
                raise failure(str(status_report["error"]), image)
            layers.note(status_report)
            if time.monotonic() >= next_report:
                next_report = time.monotonic() + REPORT_S
                yield layers.progress()
    yield layers.progress()


def main() -> None:
    """Take the image's lock and pull; if another pull holds it, wait for that one instead."""
    image, lock_file, login = sys.argv[1:4]
    lock = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        report({"progress": {"text": "waiting for another pull of this image"}})
        fcntl.flock(lock, fcntl.LOCK_EX)
        report({"done": "waited"})
        return
    try:
        for progress in pull(socket.socket(fileno=3), image, login):
            report({"progress": progress})
    except Failure as error:
        report_failure(error)
        return
    os.close(lock)  # the next pull of this image need not wait for the end of this program
    report({"done": "pulled"})
    pull_cleanup.remove_stale()
