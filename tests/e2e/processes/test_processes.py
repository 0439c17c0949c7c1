"""Which process runs as whom and what it could still become (DESIGN's picture, `ps` as it is)."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest
from e2e.installation import APP_ACCOUNTS, Call, Service, app_uids, below, processes_of

NO_CAPABILITIES = "0000000000000000"
IDENTITIES_ALONE = "00000000000000c0"


def app_processes(service: Service) -> list:
    """All that run as the app's users."""
    return [one for one in below(service.pid) if one.uid in app_uids().values()]


def test_root_is_supervisor_and_helper_and_nothing_else(service: Service) -> None:
    assert len([one for one in service.members() if one.uid == 0]) == 2
    assert service.member("svc_helper").uid == 0
    assert service.member("svc_helper").parent == service.pid


def test_the_app_is_a_parent_two_listeners_a_worker_and_apps(service: Service) -> None:
    parent = service.member("svc.app")
    children = [one for one in app_processes(service) if one.parent == parent.pid]
    assert len(children) == 4, [one.args for one in children]


def test_no_app_process_can_regain_root(service: Service) -> None:
    groups = {pwd.getpwnam(name).pw_uid: pwd.getpwnam(name).pw_gid for name in APP_ACCOUNTS}
    assert groups[app_uids()["svc-apps"]] != groups[app_uids()["svc"]], "that group opens the database"
    found = app_processes(service)
    assert len(found) == 5  # the parent, two listeners, the worker, apps
    for one in found:
        gid = groups[one.uid]
        assert one.status["Uid"].split() == [str(one.uid)] * 4
        assert one.status["Gid"].split() == [str(gid)] * 4
        assert one.status["Groups"].split() in ([], [str(gid)])
        parent = one.uid == app_uids()["svc"]
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert one.status[name].strip() == (IDENTITIES_ALONE if parent else NO_CAPABILITIES), (
                one.args,
                name,
            )
        assert one.status["CapBnd"].strip() == NO_CAPABILITIES
        assert one.status["NoNewPrivs"].strip() == "1"
        assert one.status["Seccomp"].strip() == "2"


def test_each_role_has_an_account_of_its_own(service: Service) -> None:
    names = {one.status["Name"].strip(): one.uid for one in app_processes(service)}
    uids = app_uids()
    assert names == {"svc-app": uids["svc"]} | {name: uid for name, uid in uids.items() if name != "svc"}


def test_app_processes_cannot_look_into_each_other(service: Service) -> None:
    for one in app_processes(service):
        assert os.stat(f"/proc/{one.pid}/environ").st_uid == 0, f"{one.args} is dumpable"


def test_app_processes_hold_nothing_of_each_others_listeners(service: Service) -> None:
    """Only the unix listener listens on the socket; the worker process on nothing."""
    path = service.env["SVC_SOCKET"]
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    inodes = {line.split()[6] for line in lines if line.endswith(path) and line.split()[3] == "00010000"}
    holders = [
        one
        for one in app_processes(service)
        if any(f"socket:[{inode}]" in links(one.pid) for inode in inodes)
    ]
    assert 1 <= len(holders) <= 2  # the parent keeps it for the next listener


def test_none_keeps_the_directory_of_the_start(service: Service) -> None:
    """The app has no homes and a /tmp of its own: there its listeners would end at each start."""
    assert str(service.log).startswith("/tmp/"), "the server was not started in such a directory"
    assert {os.readlink(f"/proc/{one.pid}/cwd") for one in service.members()} == {"/"}


def links(pid: int) -> list[str]:
    """What a process's descriptors lead to."""
    return [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]


def test_the_agent_is_the_user_and_has_no_privilege(alice: Call, workspace: str) -> None:
    account = pwd.getpwnam("tse-alice")
    agents = [one for one in processes_of("tse-alice") if "svc_helper.agent" in one.args]
    assert len(agents) == 1
    assert agents[0].status["Uid"].split() == [str(account.pw_uid)] * 4
    assert agents[0].status["CapEff"].strip() == NO_CAPABILITIES
    assert agents[0].status["CapPrm"].strip() == NO_CAPABILITIES


def test_nobody_but_root_reads_the_secret_and_the_database(service: Service) -> None:
    data = os.path.dirname(service.env["SVC_DB"])
    for name in ("secret.key", "svc.db"):
        status = os.stat(os.path.join(data, name))
        assert status.st_mode & 0o007 == 0 and status.st_gid == pwd.getpwnam("svc").pw_gid
    for user in ("tse-alice", "tse-carol"):
        done = subprocess.run(["runuser", "-u", user, "--", "ls", data], capture_output=True)
        assert done.returncode != 0


@pytest.mark.parametrize("name", ["helper", "supervisor"])
def test_root_processes_are_small(service: Service, name: str) -> None:
    """What forks for every agent must stay small; the exact figures are the benchmark's."""
    pid = service.pid if name == "supervisor" else service.member("svc_helper").pid
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    pss = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    assert pss < 20 * 1024, f"{name} takes {pss} kB"
