"""What svc tells root to do, after uid svc has put links where root would do it.

The service's own account breaks something, root asks what is wrong, and before root
pastes the answers the account replaces its files by names for root's. Every printed
remedy is run as root; root's files stay as they were.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from depths import sample
from e2e.installation import PATH, SVC, Outcome, environment
from ports import free_port
from waiting import until

STATE = Path("/var/lib/svc-hostile-remedies")
RUN = Path("/run/svc-hostile-remedies")
ROOTS = Path("/var/lib/svc-hostile-roots")  # where nothing may change
DATA = STATE / "data"
FILES = ("secret.key", "svc.db", "svc.db.lock", "svc.db-wal", "tls", "tls/cert.pem", "tls/key.pem")
PLANTS = {
    "a link": f"ln -s {ROOTS}/secret",
    "a link to a directory": f"ln -s {ROOTS}/closed",
    # allowed by protected_hardlinks where the linker may read and write the file
    "a hard link": f"ln {ROOTS}/writable",
    "a directory": "mkdir",
    "a pipe": "mkfifo",
}
NAMED = {  # by the doctor
    "a link": ("is a symbolic link",),
    "a link to a directory": ("is a symbolic link",),
    "a hard link": (
        "2 names (hard links)",
        "is not a directory",
        "belongs to root, but its directory to svc",
    ),
}
COMMANDS = (
    ("admin", "doctor", "--json"),
    ("admin", "create-user", "tsz-nobody-yet"),
    ("admin", "migrate"),
    ("admin", "list-users"),
    ("admin", "tls-fingerprint"),
    ("env", "--all"),
    ("server",),
)
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")  # a host has one server
HARMLESS = (  # of the host, not of our files: not run for real
    "systemctl", "editor", "journalctl", "apt-get", "usermod", "useradd", "userdel", "loginctl", "gpasswd",
    "modprobe", "nvidia-smi", "find", "packaging/install", "timedatectl", "mount", "du",
)  # fmt: skip


class Held(NamedTuple):
    """What one of root's files is, apart from its number of names."""

    uid: int
    gid: int
    mode: int
    content: bytes


class Broken:
    """An installation that the service's own account breaks, and root looks after."""

    def __init__(self, env: dict[str, str], programs: Path) -> None:
        self.env = env
        self.programs = programs
        self.svc = pwd.getpwnam("svc")

    def attack(self, script: str) -> None:
        """Run a script in the data directory as uid svc."""
        subprocess.run(
            ["sh", "-c", script], check=False, capture_output=True, cwd=DATA, extra_groups=[],
            user=self.svc.pw_uid, group=self.svc.pw_gid,
        )  # fmt: skip

    def plant(self, how: str, *names: str) -> None:
        """Replace files of the data directory as uid svc."""
        for name in names:
            self.attack(f"rm -rf {name}; mkdir -p $(dirname {name}); {PLANTS[how]} {name}")

    def call(self, *argv: str) -> Outcome:
        """Run the program as root, a server for a moment only."""
        short = [*ALONE, "timeout", "--signal=TERM", "3"] if argv[-1] == "server" else []
        done = subprocess.run(
            [*short, SVC, *argv], capture_output=True, text=True, errors="replace", timeout=60, cwd="/",
            env=self.env, stdin=subprocess.DEVNULL, check=False, start_new_session=True,
        )  # fmt: skip
        return Outcome(done.returncode, done.stdout, done.stderr)

    def findings(self, *options: str) -> list[dict[str, str]]:
        """What the doctor finds; its error when it cannot even begin."""
        outcome = self.call("admin", "doctor", "--json", *options)
        if outcome.out:
            return list(outcome.json()["items"])
        return [{"code": "doctor", "level": "fail", "found": outcome.err, "remedy": hint_of(outcome)}]

    def remedies(self) -> list[str]:
        """Every remedy that any command prints now."""
        found = []
        for argv in COMMANDS:
            outcome = self.call(*argv)
            found.append(hint_of(outcome))
            if argv[1:2] == ("doctor",) and outcome.out:
                found += [item["remedy"] for item in outcome.json()["items"]]
        return [remedy for remedy in dict.fromkeys(found) if remedy]

    def paste(self, remedies: list[str]) -> None:
        """Run each as root, as it stands there."""
        for remedy in remedies:
            subprocess.run(
                ["sh", "-c", remedy], capture_output=True, timeout=60, cwd="/", stdin=subprocess.DEVNULL,
                env=self.env | {"PATH": f"{self.programs}:{PATH}"}, check=False, start_new_session=True,
            )  # fmt: skip


def hint_of(outcome: Outcome) -> str:
    """The hint on standard error."""
    lines = [line for line in outcome.err.splitlines() if line.startswith("hint: ")]
    return lines[-1].removeprefix("hint: ") if lines else ""


def roots_files() -> dict[str, Held]:
    """Everything below ROOTS."""
    held = {}
    for path in [ROOTS, *sorted(ROOTS.rglob("*"))]:
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        held[str(path)] = Held(status.st_uid, status.st_gid, status.st_mode, content)
    return held


def remove_all() -> None:
    for path in (STATE, RUN, ROOTS):
        if path.exists():
            shutil.rmtree(path)


@pytest.fixture(scope="module")
def whole() -> Iterator[dict[str, str]]:
    """The settings of an installation that ran once; a copy of its data directory is in whole.data."""
    remove_all()
    env = environment(free_port(), STATE, RUN) | {"SVC_BACKUP_DIR": str(STATE / "backups")}
    for path in (STATE, RUN, STATE / "backups"):
        path.mkdir(mode=0o755)
    subprocess.run([SVC, "admin", "migrate"], env=env, check=True, capture_output=True, cwd="/")
    with subprocess.Popen([*ALONE, SVC, "server"], env=env, cwd="/", stdin=subprocess.DEVNULL) as server:
        until((DATA / "tls/cert.pem").exists, 30)
        server.kill()
    subprocess.run(["cp", "-a", DATA, STATE / "data.whole"], check=True)
    yield env
    remove_all()


@pytest.fixture
def broken(whole: dict[str, str], tmp_path: Path) -> Iterator[Broken]:
    """The installation as it was before anything was broken; afterwards root's files are compared."""
    shutil.rmtree(DATA)
    subprocess.run(["cp", "-a", STATE / "data.whole", DATA], check=True)
    shutil.rmtree(ROOTS, ignore_errors=True)
    for path, mode in ((ROOTS, 0o755), (ROOTS / "closed", 0o700)):
        path.mkdir()
        path.chmod(mode)
    for path, mode in ((ROOTS / "secret", 0o600), (ROOTS / "writable", 0o666), (ROOTS / "closed/in", 0o644)):
        path.write_text("root's\n")
        path.chmod(mode)
    before = roots_files()
    yield Broken(whole, programs_in(tmp_path))
    assert roots_files() == before


def programs_in(directory: Path) -> Path:
    """Stand-ins: sudo runs its command, svc is the program under test, the host's programs do nothing."""
    scripts = dict.fromkeys(HARMLESS, "exit 0")
    scripts |= {"sudo": 'exec "$@"', "svc": f'[ "$1" != server ] || exit 0\nexec {SVC} "$@"'}
    for name, script in scripts.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return directory


LOOSENED = "chmod -R go+rwX ."
EMPTIED = "for f in secret.key svc.db svc.db.lock tls/cert.pem tls/key.pem; do : > $f; done"
REMOVED = "rm -rf secret.key svc.db* tls"


@pytest.mark.parametrize(
    ("damage", "how"),
    sample(
        [
            *((LOOSENED, how) for how in PLANTS),
            *((damage, how) for damage in (EMPTIED, REMOVED) for how in ("a link", "a hard link")),
        ],
        3,
        "each damage, and each thing that is put in a file's place",
    ),
)
def test_what_root_pastes_changes_nothing_of_roots(broken: Broken, damage: str, how: str) -> None:
    broken.attack(damage)
    printed = broken.remedies()
    assert printed
    broken.plant(how, *(name for name in FILES if how != "a directory" or name != "tls/cert.pem"))
    broken.paste(printed)
    broken.paste(broken.remedies())  # told when all of it was there already


@pytest.mark.parametrize(
    ("name", "how"),
    sample(
        [
            *((name, "a link") for name in FILES),
            *((name, how) for name in ("secret.key", "svc.db", "tls") for how in list(NAMED)[1:]),
        ],
        4,
        "each file, and each thing that is put in its place",
    ),
)
def test_what_is_no_file_of_the_service_is_named(broken: Broken, name: str, how: str) -> None:
    broken.plant(how, name)
    found = [
        item for item in broken.findings() if item["level"] == "fail" and f"{DATA}/{name}" in item["found"]
    ]
    assert found, broken.findings()
    assert any(word in found[0]["found"] for word in NAMED[how]), found
    broken.paste([item["remedy"] for item in broken.findings()])


def test_the_remedies_mend_what_root_may_mend(broken: Broken) -> None:
    """Wrong owners and modes, links, and files that are none: a way out of each, without a shell's chown."""
    for name in ("secret.key", "svc.db", "tls/key.pem"):
        os.chown(DATA / name, 0, 0)
    broken.attack("chmod 0777 . tls; rm -f svc.db.lock tls/cert.pem; mkfifo tls/cert.pem")
    broken.attack("ln -s /etc/passwd svc.db.lock")
    broken.paste([item["remedy"] for item in broken.findings()])
    mine = {
        item["code"]: item
        for item in broken.findings()
        if item["code"].startswith(("data_dir", "secret_key"))
    }
    assert {item["level"] for item in mine.values()} == {"ok"}, mine
    assert {(DATA / name).stat().st_uid for name in ("", "secret.key", "svc.db", "tls/key.pem")} == {
        broken.svc.pw_uid
    }
    assert os.readlink(DATA / "svc.db.lock.aside-1") == "/etc/passwd"
    broken.call("server")
    assert broken.call("admin", "tls-fingerprint").code == 0


@pytest.mark.parametrize(("how", "why"), [("a link", "symbolic link"), ("a directory", "not a regular file")])
def test_the_server_says_what_is_wrong_with_its_secret_once(broken: Broken, how: str, why: str) -> None:
    broken.plant(how, "secret.key")
    ended = broken.call("server")
    assert (ended.code, why in ended.err) == (1, True), ended.err
    assert hint_of(ended) == f"sudo svc admin doctor --repair --db {DATA / 'svc.db'}"


def test_a_hint_of_the_services_account_is_no_command(broken: Broken) -> None:
    """A certificate's names come from a file of uid svc, and end up in a remedy."""
    script = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 300 -subj /CN=x"
        " -addext 'subjectAltName=DNS:a;touch /var/lib/svc-hostile-roots/new' -keyout ca.key -out ca.pem;"
        " openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=y"
        " -keyout tls/key.pem -addext 'subjectAltName=DNS:a;touch /var/lib/svc-hostile-roots/new' -out y.csr;"
        " openssl x509 -req -in y.csr -CA ca.pem -CAkey ca.key -days 300 -copy_extensions copyall"
        " -out tls/cert.pem"
    )
    broken.attack(script)
    (found,) = [item for item in broken.findings() if item["code"] == "tls_certificate"]
    assert ";" not in found["remedy"], json.dumps(found)
    broken.paste([found["remedy"]])
