#!/usr/bin/python3 -I
"""What a run of the tests that was killed has left on this host, and its removal by the next run.

usage: leftovers.py begin RECORD PID      end what a dead run left; note how the host is before this run
       leftovers.py process RECORD PID    note a process whose end ends a suite
       leftovers.py end RECORD PID        remove what this run left, and the note
       leftovers.py folders FOLDER...     remove those whose file `owner` names a process that has ended
       leftovers.py owner FOLDER PID      write that file

Only what is surely the tests' own goes: processes noted by number and start, users and paths that were not
there when the noted run began and that have the tests' names. The caller holds the lock of the host.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

USER = re.compile(r"ts[a-z]-.*")
NAME = re.compile(r"ts[a-z]-.*|svc-(e2e|hostile|kills|custody-kills|bench)(-.*)?")
PLACES = ("/etc/pam.d", "/home", "/run", "/run/lock", "/srv", "/tmp", "/var/lib", "/var/tmp")
RUNTIME = (Path("/run/user"), re.compile(r"(\.svc-)?(\d+)(-.*|\.former)?"))  # by uid
LIMITS = (Path("/etc/security/limits.d"), re.compile(r"ts[a-z]\.conf"))
ETC = Path("/etc")
GROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))  # cgroup2 stands at one of them
GROUP = re.compile(r"user-\d+|test-.*|svc-machine.*")
DRAFTS = re.compile(
    r"(passwd|shadow|group|gshadow|subuid|subgid)(\.lock|\.tsh|\.\d+)"
)  # of useradd, and of the tests
ENDING_S = 30


def identity(pid: int) -> str:
    """The process of that number, so that another one later is not taken for it; empty when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return "" if fields[0] in "ZX" else f"{pid} {fields[19]} {boot}"


def below(pid: int) -> list[int]:
    """That process and its descendants."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in task.read_text().split()]
    return found


def end_process(noted: str) -> None:
    """Kill it with all below it, and wait until they have ended; nothing where it is another process now."""
    pid = int(noted.split()[0])
    if identity(pid) != noted:
        return
    watched = []
    for each in below(pid):
        with contextlib.suppress(OSError):
            watched.append(os.pidfd_open(each))
    for descriptor in watched:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    for descriptor in watched:
        select.select([descriptor], [], [], ENDING_S)
        os.close(descriptor)


def listed(folder: Path, names: re.Pattern[str]) -> list[str]:
    """The entries with such a name."""
    try:
        return sorted(name for name in os.listdir(folder) if names.fullmatch(name))
    except OSError:
        return []


def state() -> dict[str, list[str]]:
    """What of the tests' names is there: users, and entries of folders."""
    found = {place: listed(Path(place), NAME) for place in PLACES}
    found |= {str(folder): listed(folder, GROUP) for folder in GROUPS}
    found[str(LIMITS[0])] = listed(*LIMITS)
    found[str(RUNTIME[0])] = listed(*RUNTIME)
    found["/etc"] = listed(ETC, DRAFTS)
    found["users"] = [user.pw_name for user in pwd.getpwall() if USER.fullmatch(user.pw_name)]
    return found


def remove_user(name: str) -> None:
    """With the processes, the home and what lies elsewhere."""
    account = pwd.getpwnam(name)
    for status in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if status.stat().st_uid == account.pw_uid:
                os.kill(int(status.name), signal.SIGKILL)
    subprocess.run(["userdel", "--force", "--remove", name], capture_output=True, check=False)
    remove(Path(account.pw_dir) if Path(account.pw_dir).parent == Path("/home") else Path("/home", name))
    for path in (Path(f"/run/user/{account.pw_uid}"), *Path("/run/user").glob(f".svc-{account.pw_uid}*")):
        remove(path)
    for path in Path("/var/tmp").iterdir():  # Podman's
        if path.lstat().st_uid == account.pw_uid:
            remove(path)


def remove(path: Path) -> None:
    """A file, a link or a folder with everything in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def remove_drafts(names: list[str]) -> None:
    """What a killed useradd leaves: its locks would stop the next one."""
    deadline = time.monotonic() + ENDING_S
    with open(ETC / ".pwd.lock", "wb") as lock:
        while names and time.monotonic() < deadline:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # somebody else's useradd
                time.sleep(0.1)
                continue
            for name in names:
                remove(ETC / name)
            return


def remove_group(path: Path) -> None:
    """A control group and those in it, unless a process is in one."""
    for folder, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def is_nobodys(name: str) -> bool:
    """Whether an entry of /run/user is of no account, so that the next one of its uid would be refused."""
    found = RUNTIME[1].fullmatch(name)
    with contextlib.suppress(KeyError):
        return found is None or pwd.getpwuid(int(found[2])) is None
    return True


def clean(before: dict[str, list[str]]) -> list[str]:
    """Remove what was not there before; what that was."""
    now = state()
    new = {
        place: [name for name in names if name not in before.get(place, [])] for place, names in now.items()
    }
    remove_drafts(new.pop("/etc"))
    users = new.pop("users")
    for name in users:
        remove_user(name)
    runtime = str(RUNTIME[0])
    new[runtime] = [name for name in new[runtime] if is_nobodys(name)]
    groups = {str(folder): new.pop(str(folder)) for folder in GROUPS}
    for place, names in groups.items():
        for name in names:
            remove_group(Path(place, name))
    for place, names in new.items():
        for name in names:
            remove(Path(place, name))
    return [*users, *(f"{place}/{name}" for place, names in new.items() for name in names)]


def dead_run(record: Path) -> None:
    """End and remove what a run left that did not come to its end."""
    try:
        noted = json.loads((record / "before").read_text())
    except (FileNotFoundError, ValueError):  # none, or one that was killed when it had done nothing yet
        return
    for path in record.glob("process-*"):
        if path.read_text():
            end_process(path.read_text())
    found = clean(noted)
    print(f"== an earlier run was killed; removed what it left: {' '.join(found) or 'nothing'}", flush=True)


def begin(record: Path, pid: int) -> None:
    """Note the host as it is before this run, when nothing of an earlier one is left."""
    dead_run(record)
    shutil.rmtree(record, ignore_errors=True)
    record.mkdir(parents=True)
    (record / "before.new").write_text(json.dumps(state()))
    (record / f"process-{pid}").write_text(identity(pid))
    (record / "before.new").rename(record / "before")


def end(record: Path, pid: int) -> None:
    """The run's own end: its suites end, and what a failed test left goes too. Called by the run itself."""
    for path in record.glob("process-*"):
        if path.name != f"process-{pid}" and path.read_text():
            end_process(path.read_text())
    clean(json.loads((record / "before").read_text()))
    shutil.rmtree(record)


def main() -> None:
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["begin", record, pid]:
            begin(Path(record), int(pid))
        case ["process", record, pid]:
            if Path(record).is_dir():
                Path(record, f"process-{pid}").write_text(identity(int(pid)))
        case ["end", record, pid]:
            end(Path(record), int(pid))
        case ["owner", folder, pid]:
            Path(folder, "owner").write_text(identity(int(pid)))
        case ["folders", *folders]:
            for folder in folders:
                with contextlib.suppress(OSError):
                    noted = Path(folder, "owner").read_text()
                    if os.stat(folder).st_uid == os.geteuid() and identity(int(noted.split()[0])) != noted:
                        shutil.rmtree(folder, ignore_errors=True)
        case _:
            sys.exit(str(__doc__))


if __name__ == "__main__":
    main()
