"""Two runs of the tests on one host do not meet, and one that is killed leaves nothing there."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

ROOT = Path(__file__).parents[2]
PARTS = ROOT / "tests/run.d"
VIEWS = Path("/var/cache/svc-tests/views")
NAME, PORT = "tsh-both", 5078
# As tests/run starts a suite: what two runs would both have, and then what they see of it.
BEGIN = f". {PARTS}/host.sh; HERE={ROOT}/tests TREE={ROOT} RESULTS=/tmp; "
SUITE = BEGIN + 'in_namespace helper; "${WRAP[@]}" /usr/bin/python3 -I -c "$0"'
SUITES = (
    BEGIN
    + 'for suite in helper hostile; do in_namespace $suite; "${WRAP[@]}" /usr/bin/python3 -I -c "$0"; done'
)
HAVE = f"""
import fcntl, json, os, pathlib, pwd, socket, subprocess, sys
subprocess.run(["useradd", "--create-home", "{NAME}"], check=True)
account = pwd.getpwnam("{NAME}")
pathlib.Path(f"/run/user/{{account.pw_uid}}").mkdir(parents=True)
for folder in ("/var/lib", "/tmp", "/sys/fs/cgroup"):
    pathlib.Path(folder, "{NAME}").mkdir()
lock = open("/run/lock/svc-tests", "w")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
listener = socket.create_server(("127.0.0.1", {PORT}))
ids = pathlib.Path("/etc/subuid").read_text().split("{NAME}:")[1].split()[0]
print(json.dumps({{"uid": account.pw_uid, "gid": account.pw_gid, "subordinate": ids, "pid": os.getpid(),
                   "homes": os.listdir("/home")}}), flush=True)
sys.stdin.read()
"""

Begin = Callable[..., "subprocess.Popen[str]"]


def numbers() -> set[str]:
    """Of the views that there are."""
    return {path.name for path in VIEWS.glob("*") if path.is_dir()}


def until_gone(before: set[str]) -> None:
    """Wait until no other views than those of before are left."""
    until(lambda: not numbers() - before, 30, every=0.1)


@pytest.fixture(scope="module", autouse=True)
def layers_left(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where the kernel takes no layer above this host's root: its own may be the second one already."""
    folder = tmp_path_factory.mktemp("layers")
    for name in ("above", "work", "root"):
        (folder / name).mkdir()
    layers = f"lowerdir=/,upperdir={folder}/above,workdir={folder}/work"
    mount = ["unshare", "--mount", "mount", "-t", "overlay", "overlay", "-o", layers, folder / "root"]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this host's root lies on two layers already, so that it has no view in a view")


@pytest.fixture
def begin() -> Iterator[Begin]:
    """begin(script, *before) -> a run: the script, in a view, when it has begun."""
    began = []

    def start(*before: str) -> subprocess.Popen[str]:
        command = [*before, PARTS / "view", ROOT, "env", "SVC_TEST_VIEW=host", "bash", "-c", SUITE, HAVE]
        run = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        began.append(run)
        return run

    yield start
    for run in began:
        with run:
            run.kill()


def facts(run: subprocess.Popen[str]) -> dict[str, Any]:
    """What a run prints when it has everything."""
    assert run.stdout and run.stderr
    line = run.stdout.readline()
    assert line, run.stderr.read()
    found: dict[str, Any] = json.loads(line)
    return found


def test_suites_beside_each_other_have_accounts_of_their_own() -> None:
    """One changes what the others would read: /etc/passwd, the next uid, the next subordinate ids."""
    create = "import subprocess; subprocess.run(['useradd', 'tsh-both']); subprocess.run(['id', 'tsh-both']);"
    create += "print(open('/etc/subuid').read().split('tsh-both:')[1], flush=True)"
    command = [PARTS / "view", ROOT, "env", "SVC_TEST_VIEW=host", "bash", "-c", SUITES, create]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    users = re.findall(r"uid=(\d+).*\n(\d+):", done.stdout)
    assert len(users) == 2 and not {*users[0]} & {*users[1]}, (done.stdout, done.stderr)


def test_two_runs_have_the_same_names_ports_and_locks(begin: Begin) -> None:
    before = numbers()
    one, other = begin(), begin()
    first, second = facts(one), facts(other)
    assert first["homes"] == second["homes"] == [NAME]
    assert first["uid"] != second["uid"] and first["subordinate"] != second["subordinate"]
    assert first["uid"] != first["gid"], "a test that takes them for one is found"
    with pytest.raises(KeyError):
        pwd.getpwnam(NAME)
    assert not any(Path(folder, NAME).exists() for folder in ("/home", "/var/lib", "/tmp", "/sys/fs/cgroup"))
    assert len(numbers() - before) == 2
    for run in (one, other):
        run.communicate(timeout=60)
        assert run.returncode == 0
    until_gone(before)


@pytest.mark.parametrize("killed", ["tests/run", "the view"])
def test_a_killed_run_leaves_nothing(begin: Begin, killed: str) -> None:
    """tests/run: at once; its view too: what is left goes when the next run begins."""
    before = numbers()
    run = begin(
        *(["bash", "-c", 'setpriv --pdeathsig TERM "$@"; exit', "bash"] if killed == "tests/run" else [])
    )
    facts(run)
    os.kill(run.pid, signal.SIGKILL)
    assert run.stdout and run.stdout.read() == "", "the suite's output is closed: it has ended"
    if killed == "the view":
        assert numbers() - before
        next_run = begin()
        facts(next_run)
        next_run.communicate(timeout=60)
    until_gone(before)
