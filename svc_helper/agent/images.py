"""Images in the user's own store: look, list, pull.

A pull runs in a process of its own (puller.py), so that it outlives the agent;
this side starts it, passes its progress on, and cancels it.
"""

from __future__ import annotations

import json
import os
import select
import sys
from typing import Any

from svc_helper.agent import puller, ranges
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.podman import Podman
from svc_helper.agent.service import Process
from svc_helper.agent.wire import not_understood
from svc_helper.protocol import CODES, ProtocolError, decode

_SITE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_POLICY_MAX = 256 * 1024
_LINE_MAX = 64 * 1024
_END_S = 30  # TERM, wait, then KILL: a killed pull leaks its temporary files


def inspect(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Whether the image is in the user's store, and what it is."""
    found = podman.ask(call, "GET", f"/images/{args['image']}/json")
    if not isinstance(found, dict):
        return {"present": False, "image_id": None, "digest": None, "size_bytes": None}
    return {"present": True, **_facts(found)}


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Every image of the user's store that has a name."""
    found = podman.ask(call, "GET", "/images/json")
    if not isinstance(found, list):
        raise not_understood()
    images = []
    for row in found:
        names = row.get("Names") if isinstance(row, dict) else None
        if isinstance(names, list):
            images.append({"names": [name for name in names if isinstance(name, str)], **_facts(row)})
    return {"images": images}


def _facts(untrusted: dict[str, Any]) -> dict[str, Any]:
    size = untrusted.get("Size")
    return {
        "image_id": str(untrusted.get("Id", ""))[:64],
        "digest": str(untrusted.get("Digest", ""))[:80] or None,
        "size_bytes": size if type(size) is int and 0 <= size < 2**62 else None,
    }


def pull(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Pull the image and answer what it is; another pull of the same image is waited for and then enough.

    The caller's going does not end it, only a cancel message does.
    """
    image = args["image"]
    call.outlives_caller = True
    if not allowed(podman.home.registries, image):
        raise Failure("registry", "images of this registry are not allowed on this host")
    ranges.demand(podman.home)
    while True:
        podman.service.renew_policy()  # Podman reads registries.conf once
        done = _pull_once(podman, call, image)
        found = inspect(podman, call, {"image": image})
        if found.pop("present"):
            # Podman reports now and then; a quick pull, or one waited for, ends with a full bar all the same.
            size = found["size_bytes"]
            call.progress({"current": size, "total": size, "unit": "bytes", "text": "ready"})
            return found
        if done != "waited":  # for one that came to nothing; now it is our turn
            raise Failure("failed", "the image is not there after its pull")


def _pull_once(podman: Podman, call: Call, image: str) -> str:
    sock, served_by = podman.connect()
    with sock:
        sock.setblocking(True)
        process, said = _start(podman, image, sock.fileno())
    try:
        return _listen(podman, call, served_by, process, said)
    finally:
        os.close(said)
        if process.wait(_END_S):
            process.ended()


def _start(podman: Podman, image: str, connection: int) -> tuple[Process, int]:
    code = f"import sys; sys.path.insert(0, {_SITE!r}); from svc_helper.agent.puller import main; main()"
    argv = [sys.executable, "-I", "-S", "-c", code, image, puller.lock_path(podman.home.own, image)]
    said, says = os.pipe2(os.O_CLOEXEC)
    actions = [
        (os.POSIX_SPAWN_DUP2, says, 1),
        (os.POSIX_SPAWN_DUP2, connection, 3),
    ]
    try:
        # A session of its own and no death signal: it ends when the pull does.
        pid = os.posix_spawn(argv[0], argv, podman.home.environment, file_actions=actions, setsid=True)
    finally:
        os.close(says)
    return Process(pid), said


def _listen(podman: Podman, call: Call, served_by: Process, process: Process, said: int) -> str:
    """Pass on what the puller says until it is done; how it ended."""
    buffer = b""
    while True:
        try:
            ready = call.wait({said: select.POLLIN, served_by.pidfd: select.POLLIN})
            if served_by.pidfd in ready:  # at its idle end; a connection it had not taken waits for the next
                served_by = podman.revived(call, served_by)
        except Failure:
            _cancel(process)
            raise
        if said not in ready:
            continue
        part = os.read(said, _LINE_MAX)
        if not part or len(buffer) > _LINE_MAX:
            raise Failure("unavailable", "the pull ended without a result")
        *lines, buffer = (buffer + part).split(b"\n")
        for line in lines:
            if done := _heard(call, line):
                return done


def _heard(call: Call, untrusted_line: bytes) -> str:
    """One line of the puller; not empty when it is the last. Raises Failure for a failed pull."""
    try:
        message = decode(untrusted_line)
    except ProtocolError:
        raise Failure("unavailable", "the pull ended without a result") from None
    if isinstance(message.get("progress"), dict):
        call.progress(message["progress"])
    if message.get("words"):
        call.log("pull failed", "warning", words=message["words"])
    if message.get("code") in CODES:
        raise Failure(str(message["code"]), str(message.get("message"))[:200])
    return str(message.get("done") or "")


def _cancel(process: Process) -> None:
    """End the puller; its connection ends with it, and with that Podman stops the pull in good order."""
    for signal in (15, 9):
        if process.ended() is not None:
            return
        os.kill(process.pid, signal)
        if process.wait(_END_S):
            process.ended()
            return


def allowed(registries: str, image: str) -> bool:
    """Whether the host's policy lets this image be pulled: exact host, prefix on a path boundary."""
    try:
        with open(registries, encoding="utf-8") as file:
            document = json.loads(file.read(_POLICY_MAX))
    except (OSError, ValueError):
        return False
    host, _, rest = image.partition("/")
    repository = rest.partition("@")[0].partition(":")[0]
    entries = document.get("registries") if isinstance(document, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or entry.get("host") != host:
            continue
        prefix = str(entry.get("path_prefix", "")).strip("/")
        if not prefix or f"{repository}/".startswith(f"{prefix}/"):
            return True
    return False
