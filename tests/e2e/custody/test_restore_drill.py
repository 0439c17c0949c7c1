"""The drill of docs/backup.md, word for word: one machine is backed up, another that has nothing becomes it.

A machine is a stand-in: e2e/stand_in.py.
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
from e2e.installation import IMAGE, PASSWORD, ROOT, Service, processes_of, remove_user
from e2e.pages import blocks
from e2e.stand_in import Machine, places
from e2e.surroundings import must, podman
from ports import free_port
from waiting import until

USER = "tse-pia"


@pytest.fixture
def machines(public_tmp_path: Path) -> Iterator[list[Machine]]:
    """Two machines that have nothing."""
    with places():
        both = [Machine(public_tmp_path / name) for name in ("old", "new")]
        yield both
        for machine in both:
            machine.end()
        remove_user(USER)


def commands(heading: str) -> list[str]:
    """The section's blocks below a heading."""
    drill = blocks(ROOT / "docs/backup.md", "Restore drill")
    found = [one.text for one in drill if one.heading.startswith(heading)]
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
