"""The configuration of the domain code, set once at the start of a process.

`configure` is called by the app before its fork, by the worker, and by the `svc admin`
commands that use the domain's rules. Everything else reads `configuration.current`
when it needs a value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from svc.limits import UPLOAD_MAX

if TYPE_CHECKING:
    from svc.settings import Settings


class Configuration(NamedTuple):
    """The values in force; the defaults are those of a process that was not configured."""

    registries_path: str = "/var/lib/svc/registries.json"
    file_roots: Mapping[str, bool] = {"work": False}  # each root, and whether it is read-only
    upload_max: int = UPLOAD_MAX
    port_range: tuple[int, int] = (20000, 24000)
    missing_limits: str = "auto"
    gpu_provider: str = "none"
    secret: bytes = b""  # the signing secret; keys are derived from it
    session_secret: bytes = b""  # signs sessions instead, if it is set


current = Configuration()


def configure(settings: Settings, secret: bytes = b"", session_secret: bytes = b"") -> None:
    """Put these settings in force for the domain code of this process."""
    global current
    current = Configuration(
        registries_path=os.path.join(settings.state_dir, "registries.json"),
        file_roots={name: path.endswith(":ro") for name, path in settings.file_roots.items()},
        upload_max=settings.upload_max,
        port_range=settings.port_range,
        missing_limits=settings.missing_limits,
        gpu_provider=settings.gpu_provider,
        secret=secret,
        session_secret=session_secret,
    )
