"""A machine of its own for pages that an administrator follows: svc at its default paths.

It is a mount namespace with empty directories in the places of svc's own. `sudo`, `systemctl` and
`journalctl` have stand-ins, since a minimal host has none of them.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from e2e.installation import PATH, PREFIX, Outcome
from waiting import until

PLACES = ("/etc/svc", "/var/lib/svc", "/run/svc", "/var/backups/svc", "/root")  # the log is in the third
PRIVATE = PLACES[3:]
SUDO = '#!/bin/sh\nexec "$@"\n'
JOURNALCTL = "#!/bin/sh\ntail -n 50 /run/svc/log\n"
SYSTEMCTL = f"""#!/bin/sh
case "$*" in
"status svc") exec {PREFIX}/bin/svc api GET /api/health ;;
"restart docker-registry")
    setsid docker-registry serve /etc/docker/registry/config.yml </dev/null >/run/svc/mirror.log 2>&1 &
    echo $! >/run/svc/mirror.pid
    exit ;;
"start svc") ;;
"stop svc" | "restart svc")
    pid=$(sed 's/.*pid //; s/[^0-9].*//' /var/lib/svc/data/svc.db.lock)
    kill "$pid" || exit 1
    while [ -e "/proc/$pid" ]; do sleep 0.1; done
    [ "$1" = restart ] || exit 0 ;;
*) exit 1 ;;
esac
setsid {PREFIX}/bin/svc server </dev/null >>/run/svc/log 2>&1 &
for try in $(seq 300); do # Type=notify: started means that it answers
    {PREFIX}/bin/svc api GET /api/health >/dev/null 2>&1 && exit
    sleep 0.1
done
exit 1
"""
NAMESPACE = "mount --bind {0}/{1} {2}"


class Machine:
    """A host with svc's directories of its own; its processes are its mount namespace's."""

    def __init__(self, folder: Path, more: Sequence[str] = ()) -> None:
        self.folder = folder
        mounts = []
        for number, place in enumerate((*PLACES, *more)):
            (folder / str(number)).mkdir(parents=True)
            (folder / str(number)).chmod(0o700 if place in PRIVATE else 0o755)
            mounts.append(NAMESPACE.format(folder, number, place))
        script = f"{' && '.join(mounts)} && echo ready && exec sleep infinity"
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script], stdout=subprocess.PIPE
        )
        assert self.holder.stdout and self.holder.stdout.readline() == b"ready\n"
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name, text in (("sudo", SUDO), ("systemctl", SYSTEMCTL), ("journalctl", JOURNALCTL)):
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)

    def run(self, script: str, user: str = "root", stdin: str = "") -> Outcome:
        """Run it with bash, which ends at the first command that fails."""
        account = pwd.getpwnam(user)
        enter = ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", "--"]
        become = [] if user == "root" else ["runuser", "-u", user, "--"]
        done = subprocess.run(
            [*enter, *become, "bash", "-euo", "pipefail", "-c", f"cd\n{script}"],
            input=stdin, capture_output=True, text=True, timeout=120, cwd="/", check=False,
            env={"PATH": f"{self.programs}:{PREFIX}/bin:{PATH}", "HOME": account.pw_dir, "LANG": "C.UTF-8"},
        )  # fmt: skip
        return Outcome(done.returncode, done.stdout, done.stderr)

    def must(self, script: str, user: str = "root", stdin: str = "") -> str:
        """Its output; it has to succeed."""
        outcome = self.run(script, user, stdin)
        assert outcome.code == 0, f"{script}\n{outcome.out}{outcome.err}\n{self.log()}"
        return outcome.out

    def log(self) -> str:
        """The server's log."""
        path = self.folder / "2/log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else ""

    def start(self) -> None:
        """Start the server, and wait until it is well."""
        self.must("systemctl start svc")
        self.ready()

    def ready(self) -> None:
        """Wait until the server is well."""
        until(lambda: self.run("svc api GET /api/health").code == 0, 30, 0.2)

    def stop(self) -> None:
        """End the server in order."""
        lock = self.folder / "1/data/svc.db.lock"
        pid = int(lock.read_text().partition("(pid ")[2].partition(")")[0]) if lock.exists() else 0
        if pid and mounts_of(pid) == mounts_of(self.holder.pid) != "":
            os.kill(pid, signal.SIGTERM)
            until(lambda: not os.path.isdir(f"/proc/{pid}"), 20, 0.05)

    def end(self) -> None:
        """Nothing of it is left."""
        self.stop()
        self.holder.kill()
        self.holder.wait()
        if self.holder.stdout:
            self.holder.stdout.close()


def mounts_of(pid: int) -> str:
    """The mount namespace of a process; empty for one that is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return ""


@contextmanager
def places(*more: str) -> Iterator[None]:
    """The mount points; those that this host lacks are taken away again."""
    made = [place for place in (*PLACES, *more) if not os.path.isdir(place)]
    for place in made:
        os.makedirs(place)
    yield
    for place in made:
        with contextlib.suppress(OSError):  # what others have put there meanwhile is theirs
            os.rmdir(place)
