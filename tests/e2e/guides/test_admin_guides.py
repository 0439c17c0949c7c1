"""Pages for administrators, word for word: TLS, registries, accounts, troubleshooting, backups.

They are followed on a machine of their own, with svc at its default paths: e2e/stand_in.py.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.guides.far_browser import write
from e2e.installation import IMAGE, PASSWORD, ROOT, Outcome, Service, remove_user
from e2e.pages import Block, Guide, blocks
from e2e.stand_in import Machine, places
from ports import free_port

USER, LEAVING = "tse-rita", "tse-ada"
MIRROR = ("/etc/docker/registry", "/var/lib/docker-registry")
SETTINGS = "SVC_DB=/var/lib/svc/data/svc.db\nSVC_PORT={port}\nSVC_GPU_PROVIDER=none\nSVC_HOST=127.0.0.1\n"
AUTHORITY = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=authority "
    "-keyout ca.key -out ca.pem && "
    "openssl x509 -req -in /etc/svc/tls/request.pem -CA ca.pem -CAkey ca.key -copy_extensions copyall "
    "-days 90 -out /etc/svc/tls/chain.pem"
)


@pytest.fixture(scope="module")
def port() -> int:
    """The TCP port of the machine's service."""
    return free_port()


@pytest.fixture(scope="module")
def machine(
    service: Service, registry: str, port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """A machine with a running service, a user, and the user's template `python`."""
    folder = tmp_path_factory.mktemp("machine")
    for path in (folder, *folder.parents):
        if path.stat().st_mode & 0o055 != 0o055:
            path.chmod(0o755)
    remove_user(USER)
    with places(*MIRROR):
        machine = Machine(folder / "admin", MIRROR)
        try:
            prepare(machine, registry, port)
            yield machine
        finally:
            mirror = machine.folder / "2/mirror.pid"
            if mirror.exists():
                os.kill(int(mirror.read_text()), signal.SIGTERM)
            machine.end()
            remove_user(USER)


def prepare(machine: Machine, registry: str, port: int) -> None:
    """What the administrator did before, by docs/install.md."""
    (machine.folder / "0/svc.env").write_text(SETTINGS.format(port=port))
    machine.must("svc admin migrate")
    machine.must(f"svc admin create-user {USER}", stdin=PASSWORD)
    machine.must(f"svc admin registry add {registry} --insecure")
    machine.start()
    source = {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}
    template = json.dumps({"name": "python", "source": source, "defaults": {"memory_bytes": 1 << 28}})
    machine.must("svc template create --file -", USER, template)


@pytest.fixture
def guide(machine: Machine, port: int) -> Callable[..., Guide]:
    """guide(page, replace) -> its reader: root where a block has `sudo`, else the user."""
    home = Path(pwd.getpwnam(USER).pw_dir)

    def typed(text: str) -> Outcome:
        as_root = re.search(r"sudo |systemctl|journalctl", text)
        outcome = machine.run(text, "root" if as_root else USER)
        if "restart svc" in text and outcome.code == 0:
            machine.ready()
        return outcome

    def put(name: str, text: str) -> None:
        (home / name).parent.mkdir(exist_ok=True)
        write(USER, home / name, text)

    def make(page: str, replace: dict[str, str] | None = None) -> Guide:
        return Guide(page, typed, put, {"alice": USER, ":24680": f":{port}"} | (replace or {}))

    return make


def test_tls(machine: Machine, guide: Callable[..., Guide], port: int) -> None:
    """The certificate of an authority is served in the end, for its name."""

    def signed(block: Block) -> bool:
        if "chain.pem" in block.text:
            machine.must(AUTHORITY)
        return False

    said = guide("tls.md").follow({}, signed)
    generated = re.findall(r"(?:[0-9A-F]{2}:){31}[0-9A-F]{2}", said["The generated certificate"])
    assert generated[0] == generated[1] != generated[2], "two programs say the same, and then another one"
    (own,) = re.findall(r"(?:[0-9A-F]{2}:){31}[0-9A-F]{2}", said["A certificate of your own authority"])
    assert own not in generated
    call = f"curl -sS --cacert ca.pem --resolve svc.example.org:{port}:127.0.0.1"
    assert '"api"' in machine.must(f"{call} https://svc.example.org:{port}/api/version")
    findings = {one["code"]: one for one in json.loads(machine.run("svc admin doctor --json").out)["items"]}
    assert findings["tls_key"]["level"] == "ok", findings["tls_key"]


def test_disk(machine: Machine, guide: Callable[..., Guide]) -> None:
    said = guide("disk.md").follow({})["Who has how much"]
    (measured, kept) = [line for line in said.splitlines() if line.startswith(f"{USER}\t")]
    assert measured.split("\t")[:-1] == kept.split("\t")[:-1]
    assert measured.split("\t")[1].isdigit()


def test_registries(machine: Machine, guide: Callable[..., Guide], registry: str) -> None:
    """The mirror is a real one, of this host's registry; the proxy is seen by the build."""
    address = f"127.0.0.1:{free_port()}"
    write("root", machine.folder / "4/password.txt", "a robot's long password\n")
    replace = {
        "127.0.0.1:5000/library/python:3.12": f"{address}/{IMAGE}",
        "127.0.0.1:5000": address,
        "sudo apt-get install docker-registry": "true",
        "/usr/share/svc/registry-cache https://registry-1.docker.io": (
            f"{ROOT}/packaging/registry-cache --port {address.rpartition(':')[2]} http://{registry}"
        ),
    }

    said = guide("registries.md", replace).follow({"dockerfile Proxies": "proxied/Dockerfile"})
    assert "robot" in said["A registry with a login"]
    assert address in said["An internal mirror"]
    machine.must("svc ws setup --template python --name after && svc ws delete after --yes", USER)
    machine.must("svc template enable proxied && svc ws setup --template proxied --name behind", USER)
    machine.must("svc ws start behind", USER)
    assert "proxy.example:3128" in machine.must("svc ws exec behind -- cat /proxy.txt", USER)
    machine.must("svc ws delete behind --yes", USER)
    for host in ("quay.io/jupyter", "docker.io/library", "registry.example:5000"):
        machine.must(f"svc admin registry remove {host}")


def test_the_first_day(machine: Machine, guide: Callable[..., Guide], registry: str) -> None:
    """From an empty policy to somebody's first workspace, and to the end of an account."""
    write("root", machine.folder / "4/password.txt", "a robot's long password\n")
    remove_user(LEAVING)
    try:
        said = guide(
            "first-day.md", {"alice": LEAVING, "docker.io/library/python:3.12": f"{registry}/{IMAGE}"}
        ).follow({})
    finally:
        remove_user(LEAVING)
    assert "shared-python" in said["A template for everybody"]
    assert "uid=0" in said["The first workspace"], "root inside, the user outside"
    assert (LEAVING in said["People come"], said["People leave"].count(f"\t{LEAVING}\t")) == (True, 0)
    for host in ("docker.io/library", "registry.example:5000"):
        machine.must(f"svc admin registry remove {host}")
    machine.must("svc template disable shared-python && svc template delete shared-python --yes")
    machine.must("svc admin quota delete staff --yes")
    unlimited = " ".join(f"--{limit} unlimited" for limit in ("running", "gpus", "memory", "images"))
    machine.must(f"svc admin quota set default {unlimited}")


def test_authentication(machine: Machine, guide: Callable[..., Guide]) -> None:
    """An account comes and goes."""
    remove_user(LEAVING)
    machine.must(f"svc admin create-user {LEAVING}", stdin=PASSWORD)
    machine.must(f"svc admin edit-user {USER} --superuser")  # who stays: the last one is not disabled
    try:
        said = guide("authentication.md", {"ada": LEAVING}).follow({})
        assert LEAVING in said["When somebody leaves"]
        assert LEAVING not in machine.must("svc admin list-users")
    finally:
        remove_user(LEAVING)
        machine.must(f"svc admin edit-user {USER} --no-superuser --last-administrator")


def test_troubleshooting(machine: Machine, guide: Callable[..., Guide]) -> None:
    said = guide("troubleshooting.md").follow({})
    assert '"ok"' in said["The service does not answer"]
    assert USER in said["A user asks"]
    assert json.loads((machine.folder / "4/doctor.json").read_text())["items"]


def test_backup(machine: Machine, guide: Callable[..., Guide]) -> None:
    """The last here, since it puts a snapshot back; the service is well again after that."""
    reader = guide("backup.md")

    drill = blocks(ROOT / "docs/backup.md", "Restore drill")  # tests/e2e/custody/test_restore_drill.py

    def restored(block: Block) -> bool:
        if block in drill:
            return True
        if "svc admin restore" not in block.text:
            return False
        snapshot = max((machine.folder / "3").glob("svc-*.db"))  # the first day has one there too
        outcome = reader.play(re.sub(r"svc-\d+T\d+\.\d+Z\.db", snapshot.name, block.text))
        assert outcome.code == 0, outcome
        return True

    reader.follow({}, restored)
    machine.ready()
    assert f"{USER}\n" in machine.must("svc whoami", USER).replace("\t", "\n")
    assert {"before.db", "svc-secrets.db.host.tar"} <= set(os.listdir(machine.folder / "4"))
