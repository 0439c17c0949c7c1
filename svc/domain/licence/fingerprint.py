"""The request code: a fingerprint of the host to which a licence is bound.

Two things go in: /etc/machine-id, which a new installation of the operating system changes, and the
DMI product uuid of the machine, which a copied disk does not bring along. Nothing of network cards,
names or addresses does. The code is an HMAC with the machine id as its key: whoever has it can
compute neither. Only root can read the uuid; containers and some virtual machines have none, and
then the machine id stands alone.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from svc.errors import HostRefused
from svc.host.ids import ALPHABET

PREFIX = "svc1"
PURPOSE = b"svc licence request code 1\0"
CODE_BYTES, CHECK_BYTES = 15, 5  # of eight characters for each five bytes
CODE = re.compile(rf"{PREFIX}(-[{ALPHABET}]{{4}}){{8}}")
MACHINE_ID = re.compile(r"[0-9a-f]{32}")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# What boards say whose maker wrote nothing of their own there.
PLACEHOLDERS = {
    "03000200-0400-0500-0006-000700080009",
    "00020003-0004-0005-0006-000700080009",
    "12345678-1234-5678-90ab-cddeefaabbcc",
    "fefefefe-fefe-fefe-fefe-fefefefefefe",
}


class Identity(NamedTuple):
    """What the code is made of; the uuid is empty on a host without one."""

    machine_id: str
    product_uuid: str


def request_code(root: str = "/") -> str:
    """The code, `svc1-` and eight groups of four; raises HostRefused on a host without a machine id."""
    return code_of(*identity(root))


def identity(root: str = "/") -> Identity:
    """What root can read of this host; raises HostRefused without a machine id."""
    machine_id = _line(os.path.join(root, "etc/machine-id"))
    if not MACHINE_ID.fullmatch(machine_id) or len(set(machine_id)) == 1:
        raise HostRefused(
            "this host has no request code: /etc/machine-id is missing or empty",
            hint="sudo systemd-machine-id-setup",
        )
    return Identity(machine_id, product_uuid(root))


def code_of(machine_id: str, uuid: str) -> str:
    """The request code of a host with that identity."""
    from hashlib import sha256  # loads OpenSSL, which the supervisor does without
    from hmac import digest

    content = digest(bytes.fromhex(machine_id), PURPOSE + uuid.encode(), "sha256")[:CODE_BYTES]
    text = _letters(content + sha256(content).digest()[:CHECK_BYTES])
    return "-".join([PREFIX, *(text[place : place + 4] for place in range(0, len(text), 4))])


def product_uuid(root: str = "/") -> str:
    """The machine's own uuid; empty where there is none, or none that this process may read."""
    uuid = _line(os.path.join(root, "sys/class/dmi/id/product_uuid")).lower()
    if not UUID.fullmatch(uuid) or uuid in PLACEHOLDERS or len(set(uuid.replace("-", ""))) == 1:
        return ""
    return uuid


def _line(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(128).strip()
    except OSError:
        return ""


def _letters(content: bytes) -> str:
    """Five bits a letter, in the letters of ids, which are not easily confused."""
    number = int.from_bytes(content, "big")
    count = len(content) * 8 // 5
    return "".join(ALPHABET[number >> 5 * place & 31] for place in reversed(range(count)))
