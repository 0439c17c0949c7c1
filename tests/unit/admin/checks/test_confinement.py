"""Doctor names what a process of the app could still do."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from svc.admin.checks import confinement as module
from svc.admin.checks.confinement import AppProcess, confinement
from svc.admin.findings import Finding, Host
from svc.host.accounts import Accounts, Identity
from svc.host.owner import Owner
from svc.settings import Settings

NONE, IDENTITIES = "0" * 16, "0" * 14 + "c0"
SOUND = {"CapPrm": NONE, "CapEff": NONE, "CapInh": NONE, "CapAmb": NONE, "CapBnd": NONE, "NoNewPrivs": "1",
         "Seccomp": "2"}  # fmt: skip
APART = {"mnt": "mnt:[1]", "net": "net:[1]", "ipc": "ipc:[1]", "pid": "pid:[1]"}


def process(name: str, uid: int, *, terminal: bool = False, **more: str) -> AppProcess:
    """A process as /proc would show it; `more` are fields of its status, or namespaces."""
    status = (
        SOUND | {"Uid": f"{uid}\t{uid}\t{uid}\t{uid}"} | {k: v for k, v in more.items() if k not in APART}
    )
    return AppProcess(7, name, status, terminal, APART | {k: v for k, v in more.items() if k in APART})


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Finding]]:
    """check(*processes) -> the findings on a host where these run."""

    def run(*found: AppProcess) -> list[Finding]:
        parent = process(
            "svc-app", 990, CapPrm=IDENTITIES, CapEff=IDENTITIES, CapInh=IDENTITIES, CapAmb=IDENTITIES
        )
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(
            module,
            "find_accounts",
            lambda: Accounts(990, 990, {"unix": 991, "tls": 992, "worker": 993}, Identity(994, 994)),
        )
        monkeypatch.setattr(module, "app_processes", lambda _pid: [parent, *found])
        monkeypatch.setattr(module, "namespaces_of", lambda _pid: {kind: f"{kind}:[0]" for kind in APART})
        return list(confinement(Host(Settings(environ={}, file={}), "", Owner(0, 0), server=5)))

    return run


def test_all_in_force_is_one_line(check: Callable[..., list[Finding]]) -> None:
    [found] = check(process("svc-unix", 991))
    assert found.level == "ok" and "mount, network, IPC, process" in found.found


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (process("svc-unix", 991, Seccomp="0"), "no seccomp filter"),
        (process("svc-unix", 991, NoNewPrivs="0"), "no_new_privs"),
        (process("svc-unix", 991, CapPrm=IDENTITIES), "capabilities"),
        (process("svc-unix", 991, CapBnd=IDENTITIES), "capabilities"),
        (process("svc-unix", 991, terminal=True), "terminal"),
        (process("svc-unix", 990), "runs as uid 990"),
    ],
)
def test_what_is_missing_fails(check: Callable[..., list[Finding]], bad: AppProcess, says: str) -> None:
    [found] = check(bad)
    assert (found.code, found.level) == ("confinement", "fail")
    assert says in found.found and "pid 7" in found.found


def test_a_namespace_that_was_refused_is_a_warning(check: Callable[..., list[Finding]]) -> None:
    warned, fine = check(process("svc-tls", 992, net="net:[0]"))
    assert (warned.code, warned.level) == ("confinement.net", "warn")
    assert fine.level == "ok" and "network" not in fine.found
