"""The configuration of the domain code, set once at the start of a process.

`configure` is called by the app before its fork and by the worker, `configure_only` by the
`svc admin` commands that use the domain's rules. Everything else reads `configuration.current`
when it needs a value.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from svc.build_keys import license_keys
from svc.limits import APPS_PORT_DEFAULT, UPLOAD_MAX

if TYPE_CHECKING:
    from svc.settings import Settings


class Configuration(NamedTuple):
    """The values in force; the defaults are those of a process that was not configured."""

    registries_path: str = "/var/lib/svc/registries.json"
    file_roots: Mapping[str, bool] = {"work": False}  # each root, and whether it is read-only
    upload_max: int = UPLOAD_MAX
    port_range: tuple[int, int] = (20000, 24000)
    apps_local_port: int = APPS_PORT_DEFAULT  # of apps in the browser, on loopback; 0 is off
    ssh_host: str = "localhost"  # the name of this host for other computers
    missing_limits: str = "auto"
    gpu_provider: str = "none"
    secret: bytes = b""  # the signing secret; keys are derived from it
    session_secret: bytes = b""  # signs sessions instead, if it is set
    state_dir: str = ""  # root's files of the trial
    license_path: str = ""
    license_keys: tuple[bytes, ...] = ()  # the vendor's, of this build
    request_code: str = ""  # of this host, found out by root


current = Configuration()


def configure_only(**values: Any) -> None:
    """Put these values in force, for a command of `svc admin` that needs no others: theirs may be invalid."""
    global current
    current = Configuration(**values)


def registries_path(settings: Settings) -> str:
    """Where the registry policy is."""
    return os.path.join(settings.state_dir, "registries.json")


def ssh_host(public_hosts: Iterable[str]) -> str:
    """The name of this host for other computers: the first of SVC_PUBLIC_HOSTS that is not its loopback's."""
    for name in public_hosts:
        is_loopback = name.startswith(("localhost", "127.", "::1", "[::1]", "ip6-"))
        if not (is_loopback or name.endswith(".localdomain")):
            return name.strip("[]")
    return socket.gethostname()


def for_templates(settings: Settings) -> dict[str, Any]:
    """The values that the rules of templates need."""
    return {
        "registries_path": registries_path(settings),
        "file_roots": {name: path.endswith(":ro") for name, path in settings.file_roots.items()},
    }


def for_licence(settings: Settings) -> dict[str, Any]:
    """The values by which the licence is resolved, but for the request code."""
    return {
        "state_dir": settings.state_dir,
        "license_path": settings.license_path,
        "license_keys": license_keys(),
    }


def configure(settings: Settings, secret: bytes = b"", session_secret: bytes = b"") -> None:
    """Put these settings in force for the domain code of this process."""
    global current
    current = Configuration(
        **for_templates(settings),
        upload_max=settings.upload_max,
        port_range=settings.port_range,
        apps_local_port=settings.apps_local_port,
        ssh_host=ssh_host(settings.public_hosts),
        missing_limits=settings.missing_limits,
        gpu_provider=settings.gpu_provider,
        secret=secret,
        session_secret=session_secret,
        **for_licence(settings),
        request_code=current.request_code,
    )


def set_request_code(code: str) -> None:
    """Put this host's request code in force: before the fork, by what root has found out."""
    global current
    current = current._replace(request_code=code)
