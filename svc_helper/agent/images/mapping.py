"""Make Podman's copy of an image for other user ids before a container needs it.

If neither kernel nor storage driver can map the owners of a layer for an ordinary user, the first
container with `run_as` makes Podman copy the whole image with other owners. Podman does so inside a
create, without progress and without a way to cancel it. Here a separate Podman does it, which can be
watched and killed. Killed, it leaves a layer marked as incomplete, which the next Podman deletes.
"""

from __future__ import annotations

import os
import select
from contextlib import suppress

from svc_helper.agent import locks, subid_ranges
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.images import store
from svc_helper.agent.images.descriptions import texts
from svc_helper.agent.images.store import Store
from svc_helper.agent.output import Output
from svc_helper.agent.podman import causes
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import Process, start
from svc_helper.wire.quick_typing import Any

_EACH_S = 0.5  # between two reports
_REMOVE_S = 120  # to remove the container, and an incomplete layer
_OUTPUT_MAX = 64 * 1024

_without_copy: set[str] = set()  # roots of stores whose driver maps ids, so that nothing is copied


def map_(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """{copy_bytes, copied}: make the copy if `copy`, else only return its size; 0 if none is needed."""
    subid_ranges.require(podman.home)
    found = podman.ask(call, "GET", f"/images/{args['image']}/json")
    image_id = found.get("Id") if isinstance(found, dict) else None
    if not isinstance(image_id, str) or len(image_id) != 64:
        raise Failure("image_missing", "the image is not in this user's store")
    place = store.find(podman, call)
    size = copy_bytes(place, image_id, args["run_as"])
    name = f"svc-map-{image_id[:12]}-{args['run_as']['uid']}-{args['run_as']['gid']}"
    if not size:
        remove_left(podman, call, place, name)
    if not size or not args["copy"]:
        return {"copy_bytes": size, "copied": False}
    with locks.held(podman.home, call, "map", name):
        if copy_bytes(place, image_id, args["run_as"]):  # nobody made it meanwhile
            _copy(podman, call, _Copy(place, name, image_id, args["run_as"], size))
    if copy_bytes(place, image_id, args["run_as"]):
        _without_copy.add(place.root)
        return {"copy_bytes": 0, "copied": False}
    return {"copy_bytes": size, "copied": True}


def copy_bytes(place: Store, image_id: str, run_as: dict[str, int]) -> int:
    """The size of a copy for these ids; 0 if the store has the copy already, or needs none."""
    if place.root in _without_copy or place.driver != "overlay":
        return 0
    record = next((row for row in store.records(place) if row.get("id") == image_id), {})
    tops = store.tops(record)
    rows = {row.get("id"): row for row in store.layer_rows(place)}
    if any(_is_mapped(rows.get(top, {}), run_as) for top in tops):
        return 0
    known = store.layers(place)
    layers = [*store.chain(tops[0], known)] if tops[0] else []
    return max(1, sum(known[layer].size for layer in layers)) if layers else 0


def _is_mapped(row: dict[str, Any], run_as: dict[str, int]) -> bool:
    """Whether a layer is complete and maps these ids to the user, who has id 0 in Podman's namespace."""
    flags = row.get("flags")
    if isinstance(flags, dict) and flags.get("incomplete"):
        return False
    maps = {kind: row.get(f"{kind}map") for kind in ("uid", "gid")}
    return all(
        isinstance(ids, list) and {"container_id": run_as[kind], "host_id": 0, "size": 1} in ids
        for kind, ids in maps.items()
    )


class _Copy:
    """One copy: the store, the name of the container that makes Podman copy, and the image."""

    def __init__(self, place: Store, name: str, image_id: str, run_as: dict[str, int], size: int) -> None:
        self.name, self.place, self.size = name, place, size
        self.free_before = store.free_bytes(place.root)
        mode = f"--userns=keep-id:uid={run_as['uid']},gid={run_as['gid']}"
        options = ("--pull=never", "--network=none", "--no-healthcheck", mode, f"--name={name}")
        self.command = ("/usr/bin/env", "podman", "create", *options, image_id, "true")

    def report(self, call: Call) -> None:
        """Report progress: what the free space of the disk has shrunk by counts as copied."""
        copied = self.free_before - store.free_bytes(self.place.root)
        current = max(0, min(copied, self.size))
        text = "copying the image for other user ids"
        call.progress({"current": current, "total": self.size, "unit": "copied", "text": text})


def _copy(podman: Podman, call: Call, copy: _Copy) -> None:
    _remove(podman, copy.name)  # left by an agent that was killed
    output = Output(_OUTPUT_MAX)
    try:
        fds = dict(enumerate((None, *output.writing)))
        process = start(list(copy.command), podman.home.environment, fds, setsid=True)
        output.close_writing()
        try:
            status = _watch(call, copy, process, output)
        except BaseException:  # raised again: nobody else would end this Podman
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.finish(0)
            raise
        finally:
            _remove(podman, copy.name)
    finally:
        output.close()
    if status != 0:
        text = output.stderr.decode(errors="replace")
        call.log("an image could not be copied", "warning", why=text[-2000:])
        raise Failure(*causes.of_container(text), text)


def remove_left(podman: Podman, call: Call, place: Store, name: str) -> None:
    """Remove the container of a copy that has been made, which an agent that was killed has left.

    Its Podman goes on without it. The image could not be removed then, and nobody copies it again.
    """
    rows = store.container_rows(f"{place.root}/{place.driver}")
    if any(name in texts(row, "names") for row in rows):
        with locks.held(podman.home, call, "map", name):  # not while it makes a copy
            _remove(podman, name)


def _watch(call: Call, copy: _Copy, process: Process, output: Output) -> int:
    """Wait for the process, reporting progress; returns its exit status."""
    while True:
        copy.report(call)
        events = {**dict.fromkeys(output.reading, select.POLLIN), process.pidfd: select.POLLIN}
        for fd in call.wait(events, _EACH_S):
            if fd == process.pidfd:
                output.finish()
                return process.ended() or 0
            output.take(fd)


def _remove(podman: Podman, name: str) -> None:
    """Remove the container; Podman also deletes incomplete layers then."""
    argv = ["/usr/bin/env", "podman", "rm", "--force", "--volumes", "--ignore", name]
    fds = {0: None, 1: None, 2: None}
    start(argv, podman.home.environment, fds, setsid=True).finish(_REMOVE_S)
