"""One pull, as a process of its own: it outlives the agent, and holds the lock that a repetition waits for.

Argv: the image and the lock file. Descriptor 3 is a connection to Podman.
Standard output gets one JSON line per report and a last one, {"done"} or
{"code", "message", "words"}; when nobody reads it any more the pull goes on.
TERM ends it: the connection closes, and Podman stops the pull in good order.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any

from svc_helper.agent.calls import Failure
from svc_helper.agent.images import pull_cleanup
from svc_helper.agent.podman.http import Wire, not_understood, whole
from svc_helper.agent.podman.podman import COMPAT, no_space

SILENCE_S = 600  # "a pull may last; ten minutes without a byte may not"
REPORT_S = 0.25
_LINE_MAX = 64 * 1024
_LAYERS_MAX = 4096
_WORDS_MAX = 2000


def lock_path(own: str, image: str) -> str:
    """The lock of an image; two images that share one merely wait for each other."""
    return f"{own}/locks/pull-{zlib.crc32(image.encode()):08x}"


class Layers:
    """How far the layers of one image are."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[int, int]] = {}
        self.text = ""

    def note(self, untrusted: dict[str, Any]) -> None:
        """Take one report of Podman's: {"id", "status", "progressDetail": {"current", "total"}}."""
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
    """The JSON objects of a stream, one per line."""
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
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise not_understood() from None
    if not isinstance(value, dict):
        raise not_understood()
    return value


class PullFailed(Failure):
    """A pull that Podman gave up, with its words for the log."""

    def __init__(self, untrusted_words: str) -> None:
        super().__init__(*meaning(untrusted_words.lower()))
        self.words = untrusted_words[:_WORDS_MAX]


def meaning(words: str) -> tuple[str, str]:
    """Code and text for the reason (in lower case) of a pull that failed."""
    if no_space(words):
        return "storage_full", "there is no space left for images"
    if any(sign in words for sign in ("manifest unknown", "name unknown", "not found", "name not known")):
        return "not_found", "the registry has no such image"
    if any(sign in words for sign in ("unauthorized", "authentication required", "denied", "forbidden")):
        return "registry", "the registry refuses access"
    if any(sign in words for sign in ("certificate", "http response to https", "tls:")):
        return "registry", "the registry cannot be reached securely"
    if any(
        sign in words
        for sign in ("pinging container registry", "dial tcp", "timeout", "connection re", "eof")
    ):
        return "registry", "the registry does not answer"
    return "failed", "the image could not be pulled"


def pull(sock: socket.socket, image: str) -> Iterator[dict[str, Any]]:
    """Pull over a connection to Podman; reports on the way, PullFailed when it comes to nothing."""
    poller = select.poll()

    def wait(mask: int) -> None:
        poller.register(sock, mask)
        if not poller.poll(SILENCE_S * 1000):
            raise Failure("timeout", "the registry sent nothing for ten minutes")

    layers = Layers()
    next_report = 0.0
    with Wire(sock, wait) as wire:
        wire.send("POST", f"{COMPAT}/images/create?fromImage={image}")
        status, parts = wire.answer()
        if status != 200:
            raise PullFailed(whole(parts, _LINE_MAX).decode(errors="replace"))
        for report in objects(parts):
            if report.get("error"):
                raise PullFailed(str(report["error"]))
            layers.note(report)
            if time.monotonic() >= next_report:
                next_report = time.monotonic() + REPORT_S
                yield layers.progress()
    yield layers.progress()


def say(message: dict[str, Any]) -> None:
    """One line to whoever started the pull, who may have gone."""
    try:
        os.write(1, json.dumps(message).encode() + b"\n")
    except OSError:
        pass


def main() -> None:
    """Hold the image's lock and pull; a pull that had to wait for another leaves it at that."""
    image, lock_file = sys.argv[1:3]
    lock = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say({"progress": {"text": "waiting for another pull of this image"}})
        fcntl.flock(lock, fcntl.LOCK_EX)
        say({"done": "waited"})
        return
    try:
        for progress in pull(socket.socket(fileno=3), image):
            say({"progress": progress})
    except Failure as failure:
        words = failure.words if isinstance(failure, PullFailed) else ""
        say({"code": failure.code, "message": failure.message, "words": words})
        return
    say({"done": "pulled"})
    pull_cleanup.sweep()
