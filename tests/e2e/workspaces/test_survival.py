"""docs/workspaces.md, "What survives what": each cell of its table but those of a reboot, seen.

What a reboot leaves is seen in tests/machine/guest/boot-2.sh.
"""

from __future__ import annotations

import json
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.installation import IMAGE, ROOT, Call, Service
from e2e.surroundings import must, podman
from waiting import until

USER, NAME = "tse-alice", "survivor"
REBOOT = "reboot of the host"
PROGRAM = "sleep 4731"
Probe = Callable[[], bool]


def table() -> dict[str, dict[str, str]]:
    """What -> event -> stays or goes, as the page says."""
    page = (ROOT / "docs/workspaces.md").read_text()
    section = page.split("\n## What survives what\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[1:]}


class Survivor:
    """A workspace, what happens to it, and the marks that are left."""

    def __init__(self, alice: Call, service: Service, base: str) -> None:
        self.alice, self.service, self.base, self.name = alice, service, base, NAME
        home = Path(pwd.getpwnam(USER).pw_dir)
        self.work = home / "work" / f"mark-{NAME}"
        self.volumes = home / ".local/share/containers/storage/volumes"
        self.port = self.image = ""

    def create(self) -> None:
        """A template with a Dockerfile, its image, a running workspace."""
        template = {
            "name": NAME,
            "source": {"type": "dockerfile", "dockerfile": f"FROM {self.base}\nVOLUME /data\n"},
            "command": ["sleep", "infinity"],
            "ports": [{"name": "web", "container_port": 8000}],
        }
        must(self.alice("template", "create", "--file", "-", stdin=json.dumps(template)))
        self.build()
        must(self.alice("ws", "create", "--template", NAME, "--name", NAME, "--env", "OWN=variable"))
        must(self.alice("ws", "start", NAME))

    def build(self) -> None:
        """Build the template's image, and enable it."""
        must(self.alice("image", "build", NAME, "--wait", timeout=180))
        must(self.alice("template", "enable", NAME))

    def inside(self, script: str) -> str:
        """What a script prints inside, empty where nothing can run."""
        return self.alice("ws", "exec", self.name, "--", "sh", "-c", script).out

    def mark(self) -> None:
        """Leave a mark of each kind."""
        self.inside(
            f"for path in /work/mark-{NAME} /tmp/mark /etc/mark /dev/shm/mark /data/mark-{NAME};"
            " do echo made >$path; done;"
            f" echo printed >/proc/1/fd/1; {PROGRAM} >/dev/null 2>&1 &"
        )
        until(lambda: all(probe() for probe in self.probes().values()), 30, 0.2)

    def probes(self) -> dict[str, Probe]:
        """What -> is its mark there?"""
        return {
            "files in `/work`": self.work.exists,
            "what is installed or changed elsewhere inside, `/tmp` too": lambda: (
                self.inside("cat /tmp/mark /etc/mark") == "made\nmade\n"
            ),
            # Found in the store, where it must not stay without its container.
            "data in a `VOLUME` of the image": lambda: any(self.volumes.glob(f"*/_data/mark-{NAME}")),
            "`/dev/shm`": lambda: self.inside("cat /dev/shm/mark") == "made\n",
            "programs that run, shells too": lambda: PROGRAM in self.inside("ps"),
            "numbers of the ports on the host": self.has_its_port,
            "own variables and resources of the workspace": lambda: self.inside("echo $OWN") == "variable\n",
            "output that is kept (`svc ws logs`)": lambda: (
                "printed" in self.alice("ws", "logs", self.name).out
            ),
            "images in your store": lambda: podman(USER, "image", "exists", self.image).code == 0,
        }

    def has_its_port(self) -> bool:
        """Whether it has the number that it had first."""
        found = self.alice("ws", "ports", self.name, "--json")
        numbers = [str(port["host_port"]) for port in found.json()["items"]] if found.code == 0 else []
        self.port = self.port or "".join(numbers)
        return numbers == [self.port]

    def stopped(self, *argv: str, stdin: str = "") -> None:
        """Stop it, run a command, start it."""
        must(self.alice("ws", "stop", self.name))
        if argv:
            must(self.alice(*argv, stdin=stdin))
        must(self.alice("ws", "start", self.name))

    def rename(self) -> None:
        """To another name and back."""
        must(self.alice("ws", "rename", NAME, "--name", "other"))
        must(self.alice("ws", "rename", "other", "--name", NAME))

    def rebuild(self) -> None:
        """Another image of the same template, which the workspace does not take yet."""
        text = f"FROM {self.base}\nVOLUME /data\nENV BUILT=again\n"
        must(self.alice("template", "dockerfile", NAME, "--set", "--file", "-", stdin=text))
        self.build()

    def upgrade(self) -> None:
        """To a revision that changes nothing of the container."""
        patch = json.dumps({"env": [{"name": "COLOUR", "value": "green"}]})
        must(self.alice("template", "edit", NAME, "--file", "-", stdin=patch))
        self.stopped("ws", "upgrade", NAME)
        assert self.inside("echo $COLOUR") == "green\n"

    def replace(self) -> None:
        """To the image that was rebuilt before."""
        self.stopped("ws", "upgrade", NAME, "--yes")
        assert self.inside("echo $BUILT") == "again\n"

    def restart_service(self) -> None:
        """svc itself ends and comes back."""
        self.service.stop()
        self.service.start()

    def delete(self) -> None:
        """The workspace goes."""
        must(self.alice("ws", "delete", NAME, "--yes"))

    def events(self) -> dict[str, Callable[[], None]]:
        """The columns of the table, in an order in which the workspace is there until the last."""
        edit = json.dumps({"display_name": "edited"})
        return {
            "stop and start": self.stopped,
            "`ws rename`": self.rename,
            "`ws edit`": lambda: self.stopped("ws", "edit", NAME, "--file", "-", stdin=edit),
            "upgrade, container stays": self.upgrade,
            "rebuild of the image": self.rebuild,
            "upgrade, container replaced": self.replace,
            "restart or update of svc": self.restart_service,
            "`ws delete`": self.delete,
        }


@pytest.fixture
def survivor(alice: Call, service: Service, registry: str) -> Iterator[Survivor]:
    """A running workspace of a template with a Dockerfile."""
    one = Survivor(alice, service, f"{registry}/{IMAGE}")
    one.create()
    yield one
    alice("ws", "delete", NAME, "--yes")
    must(alice("template", "delete", NAME, "--yes"))
    must(alice("image", "prune", "--yes"))
    one.work.unlink(missing_ok=True)


@pytest.mark.timeout(600)
def test_what_survives_what(survivor: Survivor) -> None:
    """As the page says, cell by cell."""
    said = table()
    events = survivor.events()
    assert all(set(cells) == {*events, REBOOT} for cells in said.values())
    assert set(said) == set(survivor.probes())
    survivor.image = must(survivor.alice("template", "get", NAME, "--json")).json()["source"]["image_ref"]
    for event, happens in events.items():
        survivor.mark()
        happens()
        found = {what: "stays" if probe() else "goes" for what, probe in survivor.probes().items()}
        assert found == {what: cells[event] for what, cells in said.items()}, event


def test_a_reboot_is_like_a_stop() -> None:
    """Its cells are those of the stop, which the machine suite sees again after a real one."""
    assert {what: cells[REBOOT] for what, cells in table().items()} == {
        what: cells["stop and start"] for what, cells in table().items()
    }
    guest = (ROOT / "tests/machine/guest/boot-2.sh").read_text()
    for check in (
        "what was installed in it is still there",
        "its files are still there",
        "its port is the one",
    ):
        assert check in guest
