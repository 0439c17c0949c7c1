"""Capabilities: the helper keeps those of its own work, a child that becomes a user only the two for that.

The bounding set stays that of a login: the set-uid newuidmap of rootless Podman starts from it.
"""

from __future__ import annotations

import ctypes
import os
import struct

CHOWN, DAC_OVERRIDE, SETGID, SETUID, NET_ADMIN = 0, 1, 6, 7, 12
SYS_NICE, SYS_RESOURCE, AUDIT_WRITE, AUDIT_CONTROL = 23, 24, 29, 30
# Files and cgroups of users; identities; the file behind a connection; what a login resets; PAM's audit.
HELPER = (CHOWN, DAC_OVERRIDE, SETGID, SETUID, NET_ADMIN, SYS_NICE, SYS_RESOURCE, AUDIT_WRITE, AUDIT_CONTROL)
IDENTITY = (SETGID, SETUID)
VERSION_3 = 0x20080522


def keep(numbers: tuple[int, ...]) -> None:
    """Give up all other permitted, effective and inheritable capabilities of this process; raises OSError."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        permitted = next(int(line.split()[1], 16) for line in status if line.startswith("CapPrm:"))
    kept = permitted & sum(1 << number for number in numbers)
    low, high = kept & 0xFFFFFFFF, kept >> 32
    header, data = struct.pack("Ii", VERSION_3, 0), struct.pack("6I", low, low, 0, high, high, 0)
    if ctypes.CDLL(None, use_errno=True).capset(header, data) == -1:
        raise OSError(ctypes.get_errno(), f"capset: {os.strerror(ctypes.get_errno())}")
