"""What the settings of a process mean to its domain code."""

from __future__ import annotations

import socket

import pytest

from svc.domain import configuration
from svc.settings import Settings


def test_the_settings_are_in_force() -> None:
    flags = {
        "SVC_STATE_DIR": "/srv/state",
        "SVC_FILE_ROOTS": "work=%h/work,models=/srv/models:ro",
        "SVC_UPLOAD_MAX": "5",
        "SVC_PORT_RANGE": "20000-20001",
        "SVC_MISSING_LIMITS": "refuse",
        "SVC_GPU_PROVIDER": "/srv/gpus.json",
        "SVC_PUBLIC_HOSTS": "localhost,login.example,10.0.0.1",
        "SVC_LICENSE_PATH": "/srv/license.json",
    }
    configuration.set_request_code("svc1-code")  # before the fork, kept by what each process configures
    configuration.configure(Settings(flags, environ={}, file={}), b"secret", b"ephemeral")
    assert configuration.current == (
        "/srv/state/registries.json", {"work": False, "models": True}, 5, (20000, 20001),
        24681, "login.example", "refuse", "/srv/gpus.json", b"secret", b"ephemeral",
        "/srv/state", "/srv/license.json", (), "svc1-code",
    )  # fmt: skip


def test_an_unconfigured_process_has_the_settings_defaults_and_nothing_of_this_host() -> None:
    unconfigured = configuration.Configuration()
    configuration.configure(Settings(environ={}, file={}))
    defaults = configuration.current._replace(
        upload_max=unconfigured.upload_max,
        gpu_provider="none",
        state_dir="",
        license_path="",
        ssh_host="localhost",
    )
    assert unconfigured == defaults


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (["svc.example", "10.0.0.1"], "svc.example"),
        (["localhost", "127.0.0.1", "[::1]", "host.localdomain", "10.0.0.1"], "10.0.0.1"),
        (["[2001:db8::1]"], "2001:db8::1"),
        ([], socket.gethostname()),
    ],
)
def test_the_name_for_other_computers(names: list[str], name: str) -> None:
    assert configuration.ssh_host(names) == name
