"""docs/restore-drill.md, word for word: one machine is backed up, another one that has nothing becomes it.

A machine is a mount namespace with empty directories in the places of svc's own: the default paths.
`sudo` and `systemctl start svc` have stand-ins, since a minimal host has neither.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.installation import (
    IMAGE,
    PASSWORD,
    PATH,
    PREFIX,
    ROOT,
    Outcome,
    Service,
    free_port,
    processes_of,
    remove_user,
    until,
)  # fmt: skip
from e2e.pages import blocks
from e2e.surroundings import must, podman

USER = "tse-pia"
PLACES = ("/etc/svc", "/var/lib/svc", "/run/svc", "/var/backups/svc", "/root")
SUDO = '#!/bin/sh\nexec "$@"\n'
SYSTEMCTL = f"""#!/bin/sh
[ "$*" = "start svc" ] || exit 1
setsid {PREFIX}/bin/svc server </dev/null >/run/svc/log 2>&1 &
"""
NAMESPACE = "mount --bind {0}/{1} {2}"


class Machine:
    """A host with svc's directories of its own; its processes are its mount namespace's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        mounts = []
        for number, place in enumerate(PLACES):
            (folder / str(number)).mkdir(parents=True)
            mounts.append(NAMESPACE.format(folder, number, place))
        for number, mode in ((0, 0o755), (1, 0o755), (2, 0o755), (3, 0o700), (4, 0o700)):
            (folder / str(number)).chmod(mode)
        script = f"{' && '.join(mounts)} && echo ready && exec sleep infinity"
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script], stdout=subprocess.PIPE
        )
        assert self.holder.stdout and self.holder.stdout.readline() == b"ready\n"
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name, text in (("sudo", SUDO), ("systemctl", SYSTEMCTL)):
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)

    def run(self, script: str, user: str = "root", stdin: str = "") -> Outcome:
        """Run it with bash, which ends at the first command that fails."""
        account = pwd.getpwnam(user)
        enter = ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", "--"]
        become = [] if user == "root" else ["runuser", "-u", user, "--"]
        done = subprocess.run(
            [*enter, *become, "bash", "-euo", "pipefail", "-c", script],
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


@pytest.fixture
def places() -> Iterator[None]:
    """The mount points; those that this host lacks are taken away again."""
    made = [place for place in PLACES if not os.path.isdir(place)]
    for place in made:
        os.makedirs(place)
    yield
    for place in made:
        os.rmdir(place)


@pytest.fixture
def machines(places: None, public_tmp_path: Path) -> Iterator[list[Machine]]:
    """Two machines that have nothing."""
    both = [Machine(public_tmp_path / name) for name in ("old", "new")]
    yield both
    for machine in both:
        machine.end()
    remove_user(USER)


def commands(heading: str) -> list[str]:
    """The page's blocks below a heading."""
    found = [one.text for one in blocks(ROOT / "docs/restore-drill.md") if one.heading.startswith(heading)]
    assert found
    return found


def end_processes(user: str) -> None:
    for one in processes_of(user):
        os.kill(one.pid, signal.SIGKILL)
    until(lambda: not processes_of(user))


def test_the_drill(service: Service, machines: list[Machine], registry: str) -> None:
    """ "from an empty machine to a running service with the old accounts, templates and workspaces known
    again".
    """
    old, new = machines
    (old.folder / "0/svc.env").write_text(f"SVC_DB=/var/lib/svc/data/svc.db\nSVC_PORT={free_port()}\n"
                                          "SVC_GPU_PROVIDER=none\n")  # fmt: skip
    old.must("svc admin migrate")
    old.must(f"svc admin create-user {USER}", stdin=PASSWORD)
    host = {"host": registry, "path_prefix": "", "insecure": True}
    old.must("svc admin registry set -", stdin=json.dumps({"registries": [host]}))
    old.start()
    template = {"name": "base", "source": {"type": "registry", "image_ref": f"{registry}/{IMAGE}"},
                "env": [{"name": "KEY", "value": "s3cret", "secret": True}]}  # fmt: skip
    old.must("svc template create --file -", USER, json.dumps(template))
    for name in ("kept", "lost"):
        old.must(f"svc ws setup --template base --name {name} && svc ws start {name}", USER)
    old.must("svc ws exec kept -- sh -c 'echo inside > /inside; echo beside > /work/beside'", USER)
    lost = json.loads(old.must("svc ws get lost --json", USER))["id"]
    old.must("svc ws stop kept && svc ws stop lost", USER)
    for block in commands("Before"):
        old.must(block)
    old.end()
    must(podman(USER, "rm", "--force", f"svc-{lost}"))
    # The other machine: the three files and /home came over, and nothing else.
    for path in (old.folder / "4").glob("svc.db*"):
        shutil.copy2(path, new.folder / "4")
    before = pwd.getpwnam(USER)
    ids = [Path(f"/etc/sub{kind}").read_text() for kind in ("uid", "gid")]
    end_processes(USER)
    subprocess.run(["userdel", USER], check=True, capture_output=True)
    for block in commands("On the new machine"):
        new.must(block)
    new.ready()
    assert pwd.getpwnam(USER)[2:4] == before[2:4]
    for kind, text in zip(("uid", "gid"), ids, strict=True):
        (line,) = (line for line in text.splitlines() if line.startswith(f"{USER}:"))
        assert line in Path(f"/etc/sub{kind}").read_text().splitlines()
    for block in commands("After"):
        new.must(block, USER)
    until(lambda: "restored" not in new.must("svc ws list", USER))
    new.must("svc ws start kept", USER)
    said = new.must("svc ws exec kept -- sh -c 'cat /inside /work/beside; echo $KEY'", USER)
    assert said == "inside\nbeside\ns3cret\n"
    assert "container_missing" in new.must("svc ws get lost", USER)
    new.must("svc ws start lost && svc ws stop lost", USER)
    findings = {one["code"]: one for one in json.loads(new.run("svc admin doctor --json").out)["items"]}
    for code in ("database", "secret_key", "audit_chain", "enrolment", "subuid", "state_dir", "data_dir"):
        assert findings[code]["level"] == "ok", findings[code]
    new.must("svc ws stop kept && svc ws delete kept --yes && svc ws delete lost --yes", USER)
