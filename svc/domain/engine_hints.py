"""The next command after an engine's failure, by its code, with the names of what was tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from svc.errors import SvcError

_SEE_TEMPLATE = "svc template get {template}"
_START = "svc ws start {workspace}"
_AGAIN = "svc image {verb} {template} --wait"
HINTS = {
    "storage_full": ("svc image prune",),
    "disk_quota_exceeded": ("svc image prune",),
    "command_not_found": (_SEE_TEMPLATE,),
    "command_not_executable": (_SEE_TEMPLATE,),
    "wrong_architecture": (_SEE_TEMPLATE,),
    "workdir_missing": (_SEE_TEMPLATE,),
    "not_a_directory": (_SEE_TEMPLATE,),
    "container_user_missing": (_SEE_TEMPLATE,),
    "image_too_deep": (_SEE_TEMPLATE,),
    "image_unusable": (_SEE_TEMPLATE,),
    "image_rejected": (_SEE_TEMPLATE,),
    "ids_out_of_range": (_SEE_TEMPLATE,),
    "environment_too_large": (_SEE_TEMPLATE,),
    "programs_missing": ("sudo apt-get install --reinstall podman conmon crun catatonit uidmap",),
    "network_programs_missing": (
        "sudo apt-get install netavark aardvark-dns iptables slirp4netns passt nftables",
    ),
    "memory_too_small": (
        'echo \'{{"resources": {{"memory_bytes": 1073741824}}}}\' | svc ws edit {workspace} --file -',
    ),
    "processes_exhausted": ("svc ws list",),
    "container_name_taken": ("podman rename svc-{workspace_id} mine-{workspace_id}",),
    "subids_missing": ("sudo svc admin create-user {user}",),
    "storage_damaged": ("svc ws delete {workspace}",),
    "storage_locked": (_START, _AGAIN),
    "image_corrupt": (_AGAIN,),
    "image_not_in_registry": (_SEE_TEMPLATE,),
    "registry_login_required": ("podman login {registry}", "svc image allowlist"),
    "registry_tls": ("svc image allowlist",),
    "registry_name_unknown": (_SEE_TEMPLATE,),
    "registry_unreachable": (_AGAIN,),
    "registry_timeout": (_AGAIN,),
    "registry_busy": (_AGAIN,),
    "registry_failed": (_AGAIN,),
}


@contextmanager
def completing(**names: str) -> Iterator[None]:
    """The block's errors get the hint of their code, the first form for which all names are known."""
    try:
        yield
    except SvcError as error:
        complete(error, **names)
        raise


def complete(error: SvcError, **names: str) -> None:
    """Give an error the hint of its code, unless it has one of its own."""
    if error.hint != error.default_hint:
        return
    for form in HINTS.get(error.code, ()):
        if (hint := _filled(form, names)) is not None:
            error.hint = hint
            return


def _filled(form: str, names: dict[str, Any]) -> str | None:
    try:
        return form.format(**names)
    except KeyError:
        return None
