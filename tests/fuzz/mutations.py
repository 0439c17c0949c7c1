"""How the fuzz run changes an input so that it gets past the first checks: sums and digests right again."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

from unit.bundling import BLOCK, END, TEMPLATE, checksummed, header, listing, manifest, member, written

Mutate = Callable[[bytes, int], bytes]  # libFuzzer's own: (data, most) -> data

FIELDS = [
    (0, 100), (100, 8), (108, 8), (116, 8), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8), (265, 32),
    (329, 8), (337, 8), (345, 155), (500, 12),
]  # fmt: skip
ODD = [
    b"", b"\0", b"..", b"/", b"../x", b"x/", b"./x", b"a//b", b"0", b"1", b"2", b"3", b"5", b"6", b"7", b"x",
    b"L", b"K", b"g", b"S", b"V", b"\x80" + b"\0" * 11, b"\xff" * 12, b"00000000000\0", b"77777777777\0",
    b"0004755\0", b"0000644\0", b"0000755\0", b"ustar  \0", b"ustar\x0000", b"context/", b"context/a",
    b"Dockerfile", b"manifest.json", b"a\0b", "e\u0301".encode(), "\u202e".encode(), b"\xc3", b"\\",
]  # fmt: skip
TOKENS = [
    "FROM ", "FROM r.example/a:1\n", "r.example/a", "evil.example/b", " AS b", "\n", "\\\n", "`\n", "\\ \t\n",
    " ", "\t", "\r\n", "# escape=`\n", "#escape=\\\n", "# syntax=x\n", "RUN ", "--mount=", "type=bind,from=",
    "--network=host ", "--security=insecure ", "COPY ", "--from=", "--chown=", "--chmod=", "b", "0", "$A",
    "${A}", "${A:-x}", "${A:+x}", "ARG A=", "ARG TARGETARCH\n", "'", '"', "ONBUILD ", "ADD ", "[",
    '["a", "b"]', "http://x/y", "\\u0068ttp://x", "git@h:r", "]", ",", "USER ", "root", "ENV ",
    "API_KEY=x", "EXPOSE ", "<<EOF", "\u00e9", "\u017f", "--", "\0", "\x1b", "\u202e", "\ufeff", "scratch",
    "dir:/", "oci:1/x:2", "docker-archive:/etc/shadow", "@sha256:" + "a" * 64, ":latest",
    "HEALTHCHECK --interval=1s CMD x\n", "SHELL [\"x\"]\n", "VOLUME /x\n",
    "CMD x\n", "LABEL a=b\n", "--platform=$BUILDPLATFORM ",
]  # fmt: skip


def archive(data: bytes, most: int, rng: random.Random, mutate: Mutate) -> bytes:
    """The archive changed once: a byte, a block, a header's field, its manifest's text."""
    kind = rng.randrange(8)
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)] or [b""]
    where = rng.randrange(len(blocks))
    if kind == 0:
        return mutate(data, most)
    if kind == 1:
        data = with_sums(mutate(data, most))
    elif kind == 2:
        del blocks[where : where + rng.randint(1, 3)]
    elif kind == 3:
        blocks.insert(rng.randrange(len(blocks) + 1), blocks[where])
    elif kind == 4:
        blocks[where] = _field(blocks[where], rng)
    elif kind == 5:
        content = rng.randbytes(rng.choice((0, 1, 5, 511, 512, 513)))
        blocks.insert(where, member(rng.choice(ODD)[:100] or b"a", content, kind=rng.choice((b"0", b"5"))))
    else:
        return _manifest(data, most, rng, mutate)[:most]
    return (data if kind == 1 else b"".join(blocks))[:most]


def dockerfile(data: bytes, most: int, rng: random.Random, mutate: Mutate) -> bytes:
    """The text changed once: by libFuzzer, or by words that mean something there."""
    if rng.random() < 0.4:
        return mutate(data, most)
    lines = data.split(b"\n")
    at = rng.randrange(len(data) + 1)
    token = rng.choice(TOKENS).encode()
    if rng.random() < 0.6:
        return (data[:at] + token + data[at + rng.choice((0, 0, 0, 1, len(token))) :])[:most]
    line = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.randrange(3)):
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)[:most]


MUTATIONS = {"bundles": archive, "dockerfiles": dockerfile}


def with_sums(data: bytes) -> bytes:
    """The archive with the right checksum in whatever stands where a header would."""
    created, at = bytearray(data), 0
    while at + BLOCK <= len(created) and any(created[at : at + BLOCK]):
        block = checksummed(bytes(created[at : at + BLOCK]))
        created[at : at + BLOCK] = block
        try:
            size = int(block[124:135], 8)
        except ValueError:
            size = 0
        at += BLOCK + max(0, size) + -size % BLOCK
    return bytes(created)


def _field(block: bytes, rng: random.Random) -> bytes:
    if len(block) != BLOCK:
        return block
    start, size = rng.choice(FIELDS)
    value = rng.choice(ODD)[:size].ljust(size, rng.choice((b"\0", b"\0", b" ")))
    return checksummed(block[:start] + value + block[start + size :])


def _manifest(data: bytes, most: int, rng: random.Random, mutate: Mutate) -> bytes:
    """The archive with another manifest: changed as text, or one that lists what really follows."""
    try:
        size = int(data[124:135], 8)
    except ValueError:
        return with_sums(data)
    text, rest = data[BLOCK : BLOCK + size], data[BLOCK + size + -size % BLOCK :]
    if rng.random() < 0.5:
        return member("manifest.json", mutate(text, max(1, most - len(rest) - 2 * BLOCK))) + rest
    return manifest({}, template=TEMPLATE, members=_members(rest)) + rest


def _members(rest: bytes) -> dict[str, Any]:
    """What the blocks behind the manifest hold, as far as it can be told."""
    found: dict[str, Any] = {}
    at = 0
    while at + BLOCK <= len(rest) and any(rest[at : at + BLOCK]):
        block = rest[at : at + BLOCK]
        try:
            size, mode = int(block[124:135], 8), int(block[100:107], 8)
        except ValueError:
            return found
        name = b"/".join(filter(None, (block[345:500].rstrip(b"\0"), block[:100].partition(b"\0")[0])))
        content = rest[at + BLOCK : at + BLOCK + size]
        if block[156:157] != b"5":
            fact = {
                "sha256": hashlib.sha256(content).hexdigest(),
                "size": size,
                "executable": bool(mode & 0o111),
            }
            found[name.decode(errors="replace")] = fact
        at += BLOCK + size + -size % BLOCK
    return found


def seeds(kind: str) -> list[bytes]:
    """Where a run begins: honest inputs, and one for each form that a reader knows."""
    if kind == "dockerfiles":
        good = "FROM r.example/a:1 AS b\nARG A=1\nRUN x \\\n  y\nFROM b\nCOPY --from=b /x /y\nUSER 1\n"
        return [
            good.encode(),
            b"# escape=`\nFROM r.example/a\nRUN x`\n y\n",
            *(one.encode() for one in TOKENS),
        ]
    two = {"context/a": b"alpha", "context/d/b": b"beta"}
    parts = [member(path, data) for path, data in two.items()]
    folders = header("context/", kind=b"5") + header("context/d/", kind=b"5")
    long = "context/" + "d" * 99 + "/" + "f" * 99
    prefixed = header("f" * 99, 1, prefix=b"context/" + b"d" * 99) + b"x" + bytes(BLOCK - 1)
    return [
        written(),
        written(dockerfile=None, files={}),
        manifest(two) + parts[0] + parts[1] + END,
        manifest(two) + folders + parts[1] + parts[0] + END + bytes(17 * BLOCK),
        manifest({long: b"x"}, members=listing({long: b"x"})) + prefixed + END,
        member("manifest.json", json.dumps({"format": 2}).encode()) + END,
    ]
