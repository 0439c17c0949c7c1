"""Power cuts under writes, backups and restores: what the disk did not have yet is gone.

`test_power_cuts.py` makes a few. Many: `tests/run release -- power_cuts 50`.

The database, its snapshots and root's notes are on an ext4 of their own in a file. The kernel shuts that file
system down without writing its log (EXT4_IOC_SHUTDOWN, which file system tests use for this): whatever was
not synced is lost, as when the power fails. Mounted again, every acknowledged write must be there, a file
with a snapshot's name must be one, and a restore must have left the old database, the new one, or the note
with which `--finish` completes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from e2e.installation import PATH, PREFIX, SVC, Outcome, run
from e2e.surroundings import in_database, must

SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
WITHOUT_LOG = 2  # EXT4_GOING_FLAGS_NOLOGFLUSH
MEGABYTES = 96
WRITERS = 2
WORK_S = (0.1, 1.2)
WRITER = """
import os, sys
from svc.db.connect import database, open_database, write
open_database(sys.argv[1])
number = 0
while True:
    number += 1
    name = f"cut-{os.getpid()}-{sys.argv[2]}-{number}"
    with write():
        database.execute_sql("INSERT INTO facts VALUES (?, ?)", (name, "x" * 500))
    print(name, flush=True)
    if number % 50 == 0 and sys.argv[2] == "0":
        database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
"""


class Disk:
    """An ext4 file system in a file, mounted on a directory."""

    def __init__(self, image: Path, place: Path) -> None:
        self.image, self.place = image, place
        with open(image, "wb") as file:
            file.truncate(MEGABYTES << 20)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", image], check=True)
        place.mkdir()
        self.mount()

    def mount(self) -> None:
        """Mount it; the kernel replays what its log has."""
        subprocess.run(["mount", "-o", "loop", self.image, self.place], check=True)

    def cut(self) -> None:
        """The power fails."""
        descriptor = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", WITHOUT_LOG))
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Unmount it."""
        subprocess.run(["umount", self.place], check=True)


class Cuts:
    """A database of root's on such a disk, and what is done to it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.disk = Disk(folder / "image", folder / "disk")
        state = self.disk.place / "state"
        self.env = {
            "PATH": PATH, "LANG": "C.UTF-8", "SVC_STATE_DIR": str(state), "SVC_DB": f"{state}/data/svc.db",
            "SVC_SOCKET": str(folder / "svc.sock"), "SVC_RECOVERY_DIR": str(state / "recovery"),
            "SVC_LICENSE_PATH": str(state / "license.json"),
        }  # fmt: skip
        for name in ("data", "recovery", "snapshots"):
            (state / name).mkdir(parents=True, mode=0o700)
        self.snapshots = state / "snapshots"
        subprocess.run(["chown", "svc:svc", state / "data"], check=True)
        must(self.admin("migrate"))
        self.told: set[str] = set()
        self.counts: Counter[str] = Counter()
        os.sync()

    def admin(self, *argv: str) -> Outcome:
        return run("root", "admin", *argv, env=self.env)

    def begun(self, *argv: str) -> subprocess.Popen[str]:
        """A command of root's that goes on while the power fails."""
        return subprocess.Popen(
            [SVC, "admin", *argv], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd="/", start_new_session=True,
        )  # fmt: skip

    def writer(self, number: int) -> subprocess.Popen[str]:
        """Somebody who writes as the database's account, and prints what was acknowledged."""
        return subprocess.Popen(
            ["setpriv", "--reuid=svc", "--regid=svc", "--clear-groups", PREFIX / "bin/python3", "-I", "-c",
             WRITER, self.env["SVC_DB"], str(number)],
            env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd="/",
        )  # fmt: skip

    def turn(self, number: int) -> list[str]:
        """One cut, under writers and a backup or under a restore; what is wrong afterwards."""
        restores = number % 3 == 2 and self.whole_snapshots()
        wrong = self.under_restore(restores) if restores else self.under_writers()
        self.counts["cuts under a restore" if restores else "cuts under writers and a backup"] += 1
        return wrong + self.sound()

    def under_writers(self) -> list[str]:
        writers = [self.writer(number) for number in range(WRITERS)]
        time.sleep(0.3)
        backup = self.begun("backup", "--dir", str(self.snapshots), "--retention", "3")
        time.sleep(self.chance.uniform(*WORK_S))
        acknowledged = {line for writer in writers for line in printed(writer)}
        self.disk.cut()
        self.ended([*writers, backup])
        self.again()
        present = self.rows()
        self.counts["acknowledged writes"] += len(acknowledged)
        self.told |= acknowledged
        lost = sorted(self.told - present)
        return [f"{len(lost)} acknowledged writes are lost: {lost[:3]}"] if lost else []

    def under_restore(self, snapshots: list[Path]) -> list[str]:
        before = self.rows()
        path = self.chance.choice(snapshots)
        held = rows_of(path)
        restore = self.begun("restore", str(path), "--yes")
        time.sleep(self.chance.uniform(0, 1.5))
        self.disk.cut()
        self.ended([restore])
        self.again()
        if Path(self.env["SVC_STATE_DIR"], "restore-under-way").exists():
            self.counts["completed by --finish"] += 1
            if (done := self.admin("restore", "--finish")).code:
                return [f"--finish failed: {done}"]
        present = self.rows()
        kind = "new" if present == held else "old" if present == before else "mixed"
        self.counts[f"restores that ended {kind}"] += 1
        self.told = set(present)
        return [f"the restore left neither of both: {len(present)} rows"] if kind == "mixed" else []

    def ended(self, commands: list[subprocess.Popen[str]]) -> None:
        """Kill them: after a power cut nobody goes on."""
        for command in commands:
            with contextlib.suppress(ProcessLookupError):
                os.kill(command.pid, signal.SIGKILL)
            command.communicate(timeout=60)

    def again(self) -> None:
        """The machine starts again."""
        for _ in range(100):  # until the last process has closed its files there
            if subprocess.run(["umount", self.disk.place], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.05)
        self.disk.mount()

    def rows(self) -> set[str]:
        """The writers' rows that the database has."""
        found = in_database(self.env, "SELECT name FROM facts WHERE name LIKE 'cut-%'")
        return {str(name) for (name,) in found}

    def whole_snapshots(self) -> list[Path]:
        return sorted(self.snapshots.glob("svc-*.db"))

    def sound(self) -> list[str]:
        """What the database's and the snapshots' own checks find."""
        wrong = []
        for pragma in ("integrity_check", "foreign_key_check"):
            found = in_database(self.env, f"PRAGMA {pragma}")
            if found not in ([], [["ok"]]):
                wrong.append(f"{pragma}: {found[:3]}")
        for path in [*self.whole_snapshots(), *Path(self.env["SVC_RECOVERY_DIR"]).glob("restore-*/svc.db")]:
            checked = self.admin("backup", "--verify", str(path), "--json")
            if checked.code or not checked.json()["restorable"]:
                wrong.append(f"{path}: {checked.out}{checked.err}")
            self.counts["snapshots verified"] += 1
        for path in sorted(Path(self.env["SVC_RECOVERY_DIR"]).glob("restore-*"))[:-1]:
            subprocess.run(["rm", "-r", path], check=True)
        return wrong


def printed(writer: subprocess.Popen[str]) -> list[str]:
    """The whole lines that it has printed until now.

    What it prints after the cut does not count: an fsync that the shutdown meets may be answered with
    success, and with the power gone nobody would have received that answer.
    """
    assert writer.stdout is not None
    descriptor, content = writer.stdout.fileno(), b""
    os.set_blocking(descriptor, False)
    with contextlib.suppress(BlockingIOError):
        while part := os.read(descriptor, 65536):
            content += part
    os.set_blocking(descriptor, True)
    return content[: content.rfind(b"\n") + 1].decode().split()


def rows_of(path: Path) -> set[str]:
    """The writers' rows that a snapshot has."""
    done = subprocess.run(
        ["sqlite3", "-readonly", path, "SELECT name FROM facts WHERE name LIKE 'cut-%'"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


@contextlib.contextmanager
def cuts_in(folder: Path, seed: int) -> Iterator[Cuts]:
    """A disk in this folder, unmounted at the end."""
    cuts = Cuts(folder, seed)
    try:
        yield cuts
    finally:
        cuts.disk.close()


def main(count: int, seed: int) -> int:
    """Cut so often; 1 when anything was wrong once."""
    wrong, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        with cuts_in(Path(folder), seed) as cuts:
            for number in range(count):
                found = cuts.turn(number)
                wrong += bool(found)
                print(f"{number}: {found or 'as it must be'}", flush=True)
            print(dict(sorted(cuts.counts.items())))
    print(f"{count} power cuts, {wrong} wrong, {time.monotonic() - began:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 50, int(sys.argv[2]) if sys.argv[2:] else 1))
