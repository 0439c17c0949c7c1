"""Archives that mean harm, one for each way that is known, for the bundle reader behind the real service.

Whatever one of them would make elsewhere has MARK in its name, so that it can be looked for. The reader's
own tests (tests/unit/domain/templates/test_bundles_hostile.py) go further into each;
here the whole way is tested.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable

from unit.bundling import BLOCK, END, header, manifest, member, written

from svc.limits import BUNDLE_MAX, BUNDLE_MEMBERS_MAX

MARK = "tsz-escaped"
MIB = 1024 * 1024
A = {"context/a": b"alpha"}
ALPHA = member("context/a", b"alpha")
EVIL = b"evil " * 100


def start(files: dict[str, bytes] = A) -> bytes:
    """The manifest that an honest bundle with these files would have."""
    template = {"name": MARK, "source": {"type": "dockerfile"}}
    return manifest(files, template=template)


def packed(*members: tuple[str, bytes, str], form: int = tarfile.USTAR_FORMAT, mode: int = 0o644) -> bytes:
    """What the standard library makes of (name, kind, link or content), behind a manifest."""
    file = io.BytesIO()
    file.write(start())
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, kind, rest in members:
            created = tarfile.TarInfo(name)
            created.type, created.mode = kind, mode
            if kind == tarfile.REGTYPE:
                created.size = len(rest)
                archive.addfile(created, io.BytesIO(rest.encode()))
            else:
                created.linkname, created.devmajor, created.devminor = rest, 1, 3
                archive.addfile(created)
    return file.getvalue()


def deep_path() -> bytes:
    """The steps of CVE-2025-4517: a name that passes PATH_MAX once links are followed."""
    step, path, links = "d" * 247, "", []
    for letter in "abcdefghijklmnop":
        links.append((os.path.join(path, step), tarfile.DIRTYPE, ""))
        links.append((os.path.join(path, letter), tarfile.SYMTYPE, step))
        path = os.path.join(path, step)
    links.append((os.path.join("/".join("abcdefghijklmnop"), "l" * 254), tarfile.SYMTYPE, "../" * 16))
    links.append(("escape", tarfile.SYMTYPE, "l" * 254 + "/../../../../tmp"))
    return packed(*links, (f"escape/{MARK}", tarfile.REGTYPE, "evil"), form=tarfile.PAX_FORMAT)


def extended(kind: bytes, text: bytes) -> bytes:
    """An extended header with that text before the one member."""
    return start() + member("PaxHeaders/a", text, kind=kind) + ALPHA + END


def lie(key: bytes, value: bytes) -> bytes:
    """One record of a pax header."""
    return b"%d %s=%s\n" % (len(key) + len(value) + 5, key, value)  # two digits


def many_members() -> bytes:
    """As many headers as fit: the count alone is too great."""
    return start({}) + header("context/a", 0) * (BUNDLE_MEMBERS_MAX + 2) + END


def many_listed() -> bytes:
    """A manifest that lists more than may be."""
    listed = {f"context/{number}": b"" for number in range(BUNDLE_MEMBERS_MAX + 1)}
    return manifest(listed) + END


def zeros_in_gzip() -> bytes:
    """Ten gigabytes of zeros in a gzip of ten megabytes: 160 parts of 64 MiB each."""
    return (gzip.compress(bytes(16 * MIB), 1, mtime=0) * 4) * 160


def full_of_zeros() -> bytes:
    """An honest beginning, then zeros to just below the limit."""
    data = start()
    return (
        data + header("context/a", BUNDLE_MAX - len(data) - 3 * BLOCK) + bytes(BUNDLE_MAX - len(data) - BLOCK)
    )


ARCHIVES: dict[str, Callable[[], bytes]] = {
    "two dots": lambda: start() + member(f"../../../tmp/{MARK}", EVIL) + END,
    "two dots inside": lambda: start() + member(f"context/../../{MARK}", EVIL) + END,
    "an absolute name": lambda: start() + member(f"/tmp/{MARK}", EVIL) + END,
    "two slashes": lambda: start() + member(f"//tmp/{MARK}", EVIL) + END,
    "backslashes": lambda: start() + member(f"context\\..\\..\\{MARK}", EVIL) + END,
    "listed two dots": lambda: manifest({f"context/../../../tmp/{MARK}": EVIL}) + END,
    "listed absolute": lambda: manifest({f"/tmp/{MARK}": EVIL}) + END,
    "a link and a file through it": lambda: packed(
        ("context/a", tarfile.SYMTYPE, "/tmp"), (f"context/a/{MARK}", tarfile.REGTYPE, "evil")
    ),
    "a link in the member's place": lambda: packed(("context/a", tarfile.SYMTYPE, "/etc/shadow")),
    "a hard link": lambda: packed(("context/a", tarfile.LNKTYPE, "/etc/shadow")),
    "a character device": lambda: packed(("context/a", tarfile.CHRTYPE, "")),
    "a block device": lambda: packed(("context/a", tarfile.BLKTYPE, "")),
    "a pipe": lambda: packed(("context/a", tarfile.FIFOTYPE, "")),
    "a sparse file": lambda: start() + header("context/a", 5, kind=b"S") + END,
    "setuid": lambda: packed(("context/a", tarfile.REGTYPE, "alpha"), mode=0o4755),
    "setgid": lambda: packed(("context/a", tarfile.REGTYPE, "alpha"), mode=0o2755),
    "sticky": lambda: packed(("context/a", tarfile.REGTYPE, "alpha"), mode=0o1777),
    "a name twice": lambda: start() + ALPHA + ALPHA + END,
    "a name twice, other content": lambda: start() + ALPHA + member("context/a", b"omega") + END,
    "a file that is a directory": lambda: start() + ALPHA + header("context/a/", kind=b"5") + END,
    "the deep path": deep_path,
    "a long name by pax": lambda: packed(
        ("context/" + "n" * 300, tarfile.REGTYPE, "alpha"), form=tarfile.PAX_FORMAT
    ),
    "a long name by GNU": lambda: packed(
        ("context/" + "n" * 300, tarfile.REGTYPE, "alpha"), form=tarfile.GNU_FORMAT
    ),
    "pax lies about the size": lambda: extended(b"x", lie(b"size", b"99999999999")),
    "pax lies about the path": lambda: extended(b"x", lie(b"path", f"/tmp/{MARK}".encode())),
    "pax for all": lambda: extended(b"g", lie(b"path", f"/tmp/{MARK}".encode())),
    "a name that is not UTF-8": lambda: start() + member(b"context/\xff\x1b[2J", b"alpha") + END,
    "a name of escapes": lambda: start() + member("context/\x1b]0;owned\x07\u202e", b"alpha") + END,
    "no manifest": lambda: ALPHA + END,
    "a manifest that comes second": lambda: ALPHA + start() + END,
    "two manifests": lambda: start() + start() + ALPHA + END,
    "a manifest of nothing": lambda: member("manifest.json", b"") + END,
    "a manifest that is too long": lambda: member("manifest.json", b" " * (4 * MIB)) + END,
    "a manifest of brackets": lambda: member("manifest.json", b"[" * 100_000) + END,
    "a manifest with a key twice": lambda: member("manifest.json", b'{"format":1,"format":1}') + END,
    "a manifest with NaN": lambda: member("manifest.json", b'{"format":NaN}') + END,
    "a manifest of a later format": lambda: member("manifest.json", b'{"format":2}') + END,
    "a member too many": lambda: start() + ALPHA + member(f"context/{MARK}", EVIL) + END,
    "a member too few": lambda: start() + END,
    "another content": lambda: start() + member("context/a", b"alphb") + END,
    "another size": lambda: start() + member("context/a", b"alph") + END,
    "a size beyond the archive": lambda: start() + header("context/a", raw_size=b"77777777777\0") + END,
    "a size in base 256": lambda: start() + header("context/a", raw_size=b"\x80" + b"\xff" * 11) + END,
    "cut short": lambda: written()[:-700],
    "something behind the end": lambda: written() + EVIL.ljust(BLOCK),
    "nothing": lambda: b"",
    "no tar": lambda: b"\x7fELF" + bytes(5000),
    "ten gigabytes in a gzip": zeros_in_gzip,
    "zeros up to the limit": full_of_zeros,
    "too many members": many_members,
    "too many members listed": many_listed,
    "more than may be": lambda: start() + bytes(BUNDLE_MAX),
    "a million members": lambda: start() + header("context/a") * 10**6,  # 512 MB
}

# Archives in order whose manifest asks for a template that there cannot be.
TEMPLATES: dict[str, object] = {
    "an unknown key": {"name": MARK, "source": {"type": "dockerfile"}, "privileged": True},
    "an owner": {"name": MARK, "source": {"type": "dockerfile"}, "owner": "root"},
    "a status": {"name": MARK, "source": {"type": "dockerfile"}, "status": "enabled"},
    "no name": {"source": {"type": "dockerfile"}},
    "a name that is a path": {"name": f"../{MARK}", "source": {"type": "dockerfile"}},
    "a name of markup": {"name": "<img src=x onerror=alert(1)>", "source": {"type": "dockerfile"}},
    "no source": {"name": MARK},
    "a recipe in the source too": {"name": MARK, "source": {"type": "dockerfile", "dockerfile": "FROM x"}},
    "another type": {"name": MARK, "source": {"type": "containers-storage"}},
    "a mount of root": {
        "name": MARK, "source": {"type": "dockerfile"},
        "mounts": [{"root": "/", "path": "/host", "read_only": False}],
    },
    "a mount over /etc": {
        "name": MARK, "source": {"type": "dockerfile"},
        "mounts": [{"root": "work", "path": "/etc", "read_only": False}],
    },
    "a variable of NUL": {
        "name": MARK, "source": {"type": "dockerfile"}, "env": [{"name": "A", "value": "a\0b"}]
    },
    "a secret with its value": {
        "name": MARK, "source": {"type": "dockerfile"},
        "env": [{"name": "A", "value": "b", "secret": True}] * 2,
    },
    "a command with NUL": {"name": MARK, "source": {"type": "dockerfile"}, "command": ["a\0b"]},
    "a run_as of root": {"name": MARK, "source": {"type": "dockerfile"}, "run_as": {"uid": -1, "gid": 0}},
    "a port of zero": {
        "name": MARK, "source": {"type": "dockerfile"}, "ports": [{"name": "x", "container_port": 0}]
    },
}  # fmt: skip


def describing(template: object) -> bytes:
    """A bundle in order but for the template that it describes."""
    text = json.dumps({"format": 1, "template": template, "members": _recipe_listed()})
    return member("manifest.json", text.encode()) + member("Dockerfile", RECIPE) + END


RECIPE = b"FROM scratch\n"


def _recipe_listed() -> object:
    file = io.BytesIO(manifest({"Dockerfile": RECIPE}))
    return json.loads(file.getvalue()[BLOCK:].partition(b"\0")[0])["members"]
