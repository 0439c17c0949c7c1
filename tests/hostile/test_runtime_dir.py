"""What a former owner left in /run/user/UID never acts; a stranger's file in /dev/shm keeps nobody out."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.installation import PATH, Call, Service, run
from e2e.surroundings import must
from hostile.conftest import HEIR, NEWCOMER, SECRET, set_up

MARK = Path("/tmp/tsz-former")
HOOK = {
    "version": "1.0.0",
    "hook": {"path": "/bin/sh", "args": ["sh", "-c", f"id >>{MARK}"]},
    "when": {"always": True},
    "stages": ["prestart", "createRuntime", "poststart"],
}


@pytest.fixture
def left_hook() -> Iterator[Path]:
    """The hook that a former owner of the heir's uid left for the heir's containers."""
    uid = pwd.getpwnam(HEIR).pw_uid
    hook = Path(f"/run/user/{uid}/svc/hooks/evil.json")
    hook.parent.mkdir(parents=True)
    hook.write_text(json.dumps(HOOK))
    for one in (hook, *list(hook.parents)[:3]):
        os.chown(one, uid, uid)
    yield hook
    MARK.unlink(missing_ok=True)


@pytest.fixture
def strangers_lock() -> Iterator[Path]:
    """The piece of shared memory of a newcomer's Podman, made by a stranger before the first one."""
    lock = Path(f"/dev/shm/libpod_rootless_lock_{pwd.getpwnam(NEWCOMER).pw_uid}")
    lock.touch(0o600)
    os.chown(lock, 65534, 65534)
    yield lock
    for path in lock.parent.glob(f"{lock.name}*"):
        path.unlink()


def test_a_former_owners_hooks_never_run(service: Service, svc: Call, registry: str, left_hook: Path) -> None:
    runtime = left_hook.parents[2]
    refused = run("root", "admin", "create-user", HEIR, env=service.env, stdin=SECRET + "\n")
    assert refused.code != 0
    (said,) = [line for line in refused.err.splitlines() if line.startswith("svc: ")]
    remedy = said.rpartition("sudo ")[2]
    subprocess.run(remedy.split(), env={"PATH": PATH}, check=True)
    must(run("root", "admin", "create-user", HEIR, env=service.env, stdin=SECRET + "\n"))
    subprocess.run(["rm", "-rf", runtime], check=True)  # back again, as if the enrolment were older
    os.rename(f"{runtime}.former", runtime)
    Path(f"/run/user/.svc-{runtime.name}").write_text(f"tsz-former {runtime.stat().st_ino}\n")
    set_up(service, HEIR, registry)
    assert must(svc(HEIR, "ws", "exec", "lab", "--", "echo", "here")).out == "here\n"
    assert not MARK.exists()
    assert not left_hook.exists()


def test_a_strangers_lock_keeps_nobody_out(service: Service, svc: Call, strangers_lock: Path) -> None:
    """Podman would not start: it opens what has this name, and may not."""
    must(run("root", "admin", "create-user", NEWCOMER, env=service.env, stdin=SECRET + "\n"))
    assert must(svc(NEWCOMER, "image", "overview", "--json")).json()["items"] == []
    assert strangers_lock.stat().st_uid == pwd.getpwnam(NEWCOMER).pw_uid
