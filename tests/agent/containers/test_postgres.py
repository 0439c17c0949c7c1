"""PostgreSQL as a launcher: after a stop of its workspace it starts without recovery."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent.containers.test_exec import run
from agent.containers.test_launchers import start, text
from agent.priv_ns import Agent, User, wait_for

pytestmark = pytest.mark.root
Make = Callable[..., str]
PROGRAMS = Path("/usr/lib/postgresql")
SHARED = Path("/usr/share/postgresql")
READY = "database system is ready to accept connections"


def as_its_user(*command: str) -> tuple[str, ...]:
    """The command as a user of the image: PostgreSQL does not run as root."""
    return "su", "-s", "/bin/sh", "worker", "-c", f"exec {shlex.join(command)}"


def psql(query: str) -> tuple[str, ...]:
    """The command that makes a query."""
    return as_its_user("psql", "--host=/tmp", "--dbname=postgres", "-qAt", "-c", query)


@pytest.fixture
def programs(user: User) -> Iterator[str]:
    """The host's PostgreSQL, with the libraries that it needs, below /work/pg; its directory."""
    found = sorted(PROGRAMS.glob("*/bin/postgres"))
    if not found:
        pytest.skip("needs PostgreSQL's programs on the host: apt-get install postgresql")
    version = found[-1].parents[1]
    copy = Path(user.home, "work/pg")
    conversions = [str(path) for path in version.glob("lib/*.so") if "_and_" in path.name]
    libraries = [str(version / "lib/dict_snowball.so"), str(version / "lib/plpgsql.so"), *conversions]
    binaries = [str(version / "bin" / name) for name in ("postgres", "initdb", "psql")]
    printed = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=True).stdout
    linked = set(re.findall(r"(/\S+) \(0x", printed))
    user.run("mkdir", "-p", str(copy))
    shutil.copytree(SHARED / version.name, copy / str(SHARED)[1:] / version.name)
    for source in (*binaries, *libraries, *linked):
        target = copy / source.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    yield str(version / "bin")
    shutil.rmtree(copy)


def test_it_restarts_without_recovery(agent: Agent, make: Make, programs: str) -> None:
    path = f"{programs}:/bin"
    ws = make(env={"PATH": path})
    install = "umask 022 && cp -r /work/pg/. / && mkdir /data && chown worker: /data && chmod 700 /data"
    installed = run(agent, ws, "sh", "-c", install)
    assert installed["exit_code"] == 0, installed["stderr"]
    made = run(agent, ws, *as_its_user("initdb", "--no-locale", "-D", "/data"))
    assert made["exit_code"] == 0, made["stderr"]
    command = as_its_user("postgres", "-D", "/data", "-k", "/tmp")
    start(agent, ws, "db", *command)
    wait_for(lambda: READY in text(agent, ws, "db"))
    filled = run(agent, ws, *psql("CREATE TABLE t AS SELECT generate_series(1, 1000) n"))
    assert filled["exit_code"] == 0, filled["stderr"]
    start(agent, ws, "client", *psql("SELECT pg_sleep(1000)"))  # a smart shutdown alone would wait for it
    active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep(1000)%'"
    wait_for(lambda: run(agent, ws, *psql(active))["stdout"].strip() == "2")
    assert agent.call("ctr.stop", id=ws, grace_s=60, deadline_s=100).data
    assert "database system is shut down" in text(agent, ws, "db")
    assert agent.call("ctr.start", id=ws).data
    start(agent, ws, "db", *command)
    wait_for(lambda: text(agent, ws, "db").count(READY) == 2)
    said = text(agent, ws, "db").rpartition("database system is shut down")[2]
    assert "database system was shut down at" in said
    assert "recovery" not in said and "interrupted" not in said
    assert run(agent, ws, *psql("SELECT count(*) FROM t"))["stdout"] == "1000\n"
