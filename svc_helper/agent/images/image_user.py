"""The user that an image's programs run as: its `USER`, with the numbers from its own /etc/passwd.

The files are read from the directories of the image's layers, without following links. They are as
untrusted as the image, and belong to the user that this process runs as.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.images import store
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.quick_typing import Any

_FILE_MAX = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}")
_NUMBER = re.compile(r"[0-9]{1,10}")
_ID_MAX = 2**32 - 2
_IDS_OF_AN_ACCOUNT = 65536  # as useradd gives them
_KNOWN_MAX = 256  # images; more than workspaces of one store use

_known: dict[str, dict[str, Any] | None] = {}  # by image id, which identifies the content


def find(podman: Podman, call: Call, untrusted_image: dict[str, Any]) -> dict[str, Any] | None:
    """{name, uid, gid} of an image, from Podman's description, each None if unknown; None for root.

    With `fault` for one that no container can run as: see fault_of().
    """
    config = untrusted_image.get("Config")
    spec = config.get("User") if isinstance(config, dict) else None
    if not isinstance(spec, str) or not spec.partition(":")[0].strip("0"):
        return None
    image_id = str(untrusted_image.get("Id", ""))[:64]
    try:
        return _known[image_id]
    except KeyError:
        pass
    databases = _databases(podman, call, image_id)
    found = resolve(spec, *(databases or ("", "")))
    if found and databases and (fault := fault_of(spec, found, *databases)):
        found["fault"] = fault
    if databases:  # else the next call may learn more
        if len(_known) >= _KNOWN_MAX:
            _known.clear()
        _known[image_id] = found
    return found


def resolve(spec: str, passwd: str, group: str) -> dict[str, Any] | None:
    """{name, uid, gid} of a `USER` value, resolved as Podman does; None for root."""
    user, colon, of_group = spec.partition(":")
    entry = _entry(user, passwd, uid_at=2) or []
    name = entry[0] if entry else user
    uid, gid = _id(entry[2]) if entry else _id(user), _id(entry[3]) if len(entry) > 3 else None
    if uid == 0 or (uid is None and user == "root"):
        return None
    if colon:
        found = _entry(of_group, group, uid_at=2)
        gid = _id(found[2]) if found else _id(of_group)
    elif gid is None and not entry and uid is not None:
        gid = 0  # a numeric uid without an account
    is_name = _NAME.fullmatch(name) and not name.isdigit()
    return {"name": name if is_name else None, "uid": uid, "gid": gid}


def fault_of(spec: str, found: dict[str, Any], passwd: str, group: str) -> str:
    """Why no container can run as a `USER` value: a name is `missing`, an id out of `range`; else empty."""
    user, _, of_group = spec.partition(":")
    for name, text in ((user, passwd), (of_group, group)):
        if name and text and not _NUMBER.fullmatch(name) and _entry(name, text, uid_at=2) is None:
            return "missing"
    largest = max(found["uid"] or 0, found["gid"] or 0)
    return "range" if largest >= _IDS_OF_AN_ACCOUNT else ""


def _entry(requested: str, text: str, *, uid_at: int) -> list[str] | None:
    """The fields of the first line with this name, else of the first with this number."""
    lines = [fields for line in text.splitlines() if len(fields := line.split(":")) > uid_at]
    named = (fields for fields in lines if fields[0] == requested)
    numbered = (fields for fields in lines if fields[uid_at] == requested)
    return next(named, None) or next(numbered, None)


def _id(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) and int(text) <= _ID_MAX else None


def _databases(podman: Podman, call: Call, image_id: str) -> tuple[str, str] | None:
    """The texts of /etc/passwd and /etc/group, empty if missing; None if Podman does not name its store."""
    try:
        place = store.find(podman, call)
    except Failure as failure:
        if not failure.engine:
            raise
        return None
    record = next((row for row in store.records(place) if row.get("id") == image_id), {})
    top = next(iter(store.tops(record)), "")
    layers = [*store.chain(top, store.layers(place))]
    roots = [f"{place.root}/{place.driver}/{layer}/diff" for layer in layers if "/" not in layer]
    return _topmost(roots, "passwd"), _topmost(roots, "group")


def _topmost(roots: Iterable[str], name: str) -> str:
    """The text of /etc/NAME in the first layer that has it; empty for another kind of file, as a whiteout."""
    for root in roots:
        try:
            return _read(root, name)
        except FileNotFoundError:
            continue
        except OSError:
            break
    return ""


def _read(root: str, name: str) -> str:
    """The text of /etc/NAME below this root, without following links; empty unless a regular file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    directory = os.open(f"{root}/etc", flags | os.O_DIRECTORY)
    try:
        fd = os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=directory)
    finally:
        os.close(directory)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        with open(fd, "rb", closefd=False) as file:
            return file.read(_FILE_MAX).decode(errors="replace")
    finally:
        os.close(fd)
