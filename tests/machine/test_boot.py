"""What boots the machine: when it is killed, its guest ends with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

BOOT = Path(__file__).parent / "boot"
MARK = "86397"  # seconds that only the guest sleeps


def guest() -> list[int]:
    """The processes of the guest, as this host sees them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().split(b"\0")[2:3] == [MARK.encode()]:
                found.append(int(path.parent.name))
        except OSError:
            continue  # it has ended
    return found


def comes(wanted: bool) -> bool:
    """Whether the guest runs, or has ended, within twenty seconds."""
    deadline = time.monotonic() + 20
    while bool(guest()) is not wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(guest()) is wanted


@pytest.mark.machine
def test_a_boot_that_is_cut_ends_its_guest(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it boots a machine")
    for name in ("etc", "usr/bin", "usr/sbin", "proc", "sys", "dev", "run", "tmp", "var", "root"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "sbin").symlink_to("usr/sbin")
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "etc/os-release").write_text("ID=test\n")
    shutil.copy("/bin/busybox", tmp_path / "usr/bin/busybox")
    (tmp_path / "usr/sbin/init").write_text(f"#!/bin/busybox sh\n/bin/busybox sleep {MARK}; exit 0\n")
    (tmp_path / "usr/sbin/init").chmod(0o755)
    with subprocess.Popen([BOOT, tmp_path], stdout=subprocess.DEVNULL) as boot:
        try:
            assert comes(True), "the guest did not start"
        finally:
            boot.kill()  # as subprocess.run does after its timeout
    ended = comes(False)
    for pid in guest():
        os.kill(pid, signal.SIGKILL)
    assert ended, "the guest ran on"
