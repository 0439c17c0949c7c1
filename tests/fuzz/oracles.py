"""What must hold whatever a reader is given; each function takes any bytes and says how they ended.

Used by the fuzz run (__main__.py) and, over the seeds that it kept, by the unit suite. Both readers
are also compared with something that shares no line with them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import tarfile
import time

from svc.domain.templates import bundles, dockerfile_review, dockerfiles
from svc.domain.templates.bundles import Bundle
from svc.domain.templates.dockerfiles import Dockerfile
from svc.errors import RegistryNotAllowed, SvcError, TooLarge, ValidationFailed

ACCEPTED = "accepted"
SECONDS_MAX = 5.0  # of one input, on a busy machine; the largest are bounded by their limits, not by this

_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_URL = re.compile(r"['\"]?https?://", re.IGNORECASE)
_NAIVE_MOUNT = re.compile(r"^(?:ONBUILD\s+)?RUN\s+(?:--\S+\s+)*?--mount\b", re.IGNORECASE)


def bundle(untrusted: bytes) -> str:
    """Read an archive: ACCEPTED, or the code of its refusal."""
    _read_as_context(untrusted)
    began = time.monotonic()
    try:
        found = bundles.read(io.BytesIO(untrusted))
    except (ValidationFailed, TooLarge) as error:
        return _refusal(error, began)
    _require_true(found)
    _require_same_to_others(found, untrusted)
    _require_written_again(found)
    assert time.monotonic() - began < SECONDS_MAX
    return ACCEPTED


def _read_as_context(untrusted: bytes) -> None:
    """The same archive as the files of a context alone: refused, or harmless names and their contents."""
    began = time.monotonic()
    try:
        found = bundles.read_context(io.BytesIO(untrusted))
    except (ValidationFailed, TooLarge) as error:
        _refusal(error, began)
        return
    for one in found:
        assert one.path and not one.path.startswith("/") and not _UNSEEN.search(one.path)
        assert not {"", ".", ".."} & set(one.path.split("/"))
        with one.open() as file:
            assert hashlib.sha256(file.read()).hexdigest() == one.sha256
    assert len({one.path for one in found}) == len(found)
    assert time.monotonic() - began < SECONDS_MAX


def dockerfile(untrusted: bytes) -> str:
    """Read and review a Dockerfile that somebody else wrote: ACCEPTED, or the code of its refusal."""
    began = time.monotonic()
    try:
        found = dockerfiles.parse(untrusted)
        for finding in dockerfile_review.findings(found):
            _require_printed(finding["message"])
        mine = dockerfile_review.refusals(found, own=True, allows=_allows)
        theirs = dockerfile_review.refusals(found, own=False, allows=_allows)
        assert bool(mine) <= bool(theirs), "refused to its author, so to everybody"
        dockerfile_review.require(found, own=False, allows=_allows)
    except (ValidationFailed, RegistryNotAllowed) as error:
        return _refusal(error, began)
    assert not theirs
    _require_harmless(found, untrusted)
    assert time.monotonic() - began < SECONDS_MAX
    return ACCEPTED


ORACLES = {"bundles": bundle, "dockerfiles": dockerfile}


def _refusal(error: SvcError, began: float) -> str:
    """A refusal's code, once its words are seen to be printable and short."""
    _require_printed(error.message)
    assert error.fields or isinstance(error, TooLarge)
    for field in error.fields:
        _require_printed(field["field"])
        _require_printed(field["message"])
    assert time.monotonic() - began < SECONDS_MAX
    return error.fields[0]["code"] if error.fields else error.code


def _require_printed(text: str) -> None:
    assert text and len(text) < 3000
    assert not _UNSEEN.search(text), ascii(text)


def _require_true(found: Bundle) -> None:
    """Every member has a harmless name and exactly the content that the manifest promises."""
    for path, fact in found.members.items():
        assert path == "Dockerfile" or path.startswith("context/")
        assert not path.endswith("/") and "\\" not in path and not _UNSEEN.search(path)
        assert not {"", ".", ".."} & set(path.split("/"))
        with found.open(path) as file:
            content = file.read()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (fact.size, fact.sha256)


def _require_same_to_others(found: Bundle, untrusted: bytes) -> None:
    """The standard library finds the same members with the same bytes, and nothing else."""
    with tarfile.open(fileobj=io.BytesIO(untrusted), mode="r:") as archive:
        seen = {}
        for info in archive:
            assert info.isfile() or info.isdir(), info
            if info.isfile():
                content = archive.extractfile(info)
                assert content is not None
                seen[info.name] = (content.read(), bool(info.mode & 0o111))
    assert seen.pop("manifest.json")
    ours = {}
    for path, fact in found.members.items():
        with found.open(path) as file:
            ours[path] = (file.read(), fact.executable)
    assert seen == ours


def _require_written_again(found: Bundle) -> None:
    """Export of what was imported has the same digest and is read again."""
    file = io.BytesIO()
    assert bundles.write(file, found.template, found.dockerfile(), found.context()) == found.digest
    again = bundles.read(file)
    assert (again.digest, again.template, dict(again.members)) == (
        found.digest,
        found.template,
        dict(found.members),
    )


def _allows(image: str) -> bool:
    return image.startswith("r.example/")


def _require_harmless(found: Dockerfile, untrusted: bytes) -> None:
    """What is let through mounts nothing, downloads nothing and takes no other image, by either reading."""
    taken = dockerfile_review.images(found)
    assert all(map(_allows, taken))
    for stage in found.stages:
        assert stage.image in (None, "scratch") or stage.image in taken
        for one in stage.instructions:
            assert not [flag for flag in one.flags if "mount" in flag.lower()]
            if one.keyword == "ADD":
                assert not [argument for argument in _arguments(one.rest) if _URL.match(argument)], one
    for line in _joined_naively(untrusted.decode()):
        assert not _NAIVE_MOUNT.match(line), line


def _arguments(rest: str) -> list[str]:
    """The sources of an ADD, as words and as JSON."""
    with contextlib.suppress(ValueError):
        return [str(argument) for argument in json.loads(rest)][:-1]
    return rest.split()[:-1]


def _joined_naively(text: str) -> list[str]:
    """The lines joined by a backslash (or the backtick that the first line names), comments left out."""
    text = text.removeprefix("\ufeff")
    first = re.match(r"[ \t]*#[ \t]*escape[ \t]*=[ \t]*([`\\])\s*\n", text, re.IGNORECASE)
    escape = re.escape(first[1] if first else "\\")
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    return re.sub(rf"{escape}[ \t\r]*\n", "", "\n".join(lines)).replace("\r", "").split("\n")
