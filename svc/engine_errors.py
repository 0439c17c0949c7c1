"""Causes of a failure that the engine's words tell (svc_helper/agent/podman/causes.py): a code for each.

`details.engine` of each has the words, for the owner of the engine. `next_commands` become
the hint where it is known what was tried (svc.domain.engine_hints). For svc.helper, which
raises them by code; the rest of the program handles EngineFailed.
"""

from __future__ import annotations

from collections.abc import Mapping

from svc.actions.commands import Command, command, edit
from svc.actions.table import BY_NAME, WORKSPACE_START
from svc.errors import EngineFailed, StorageFull, SvcError

SEE_TEMPLATE = "svc template get {template}"


def start(names: Mapping[str, str]) -> Command:
    """Start the workspace."""
    return command(WORKSPACE_START, ref=names["workspace"])


def again(names: Mapping[str, str]) -> Command:
    """Pull or build the template's image once more."""
    return command(BY_NAME[f"image.{names['verb']}"], ref=names["template"])


def more_memory(names: Mapping[str, str]) -> Command:
    """Give the workspace a GiB."""
    return edit(names["workspace"], {"resources": {"memory_bytes": 1 << 30}})


class DiskQuotaExceeded(StorageFull):
    """The user's quota on the disk of the images and containers is used up."""

    code, status = "disk_quota_exceeded", 507
    next_commands = ("svc image prune",)


class CommandNotFound(EngineFailed):
    """There is no command, or it is not in the image, or the interpreter or loader that it names is not."""

    code, status = "command_not_found", 422
    next_commands = (SEE_TEMPLATE,)


class CommandNotExecutable(EngineFailed):
    """The command or entrypoint of the workspace may not be executed: its file mode forbids it, or it is a directory."""

    code, status = "command_not_executable", 422
    next_commands = (SEE_TEMPLATE,)


class WrongArchitecture(EngineFailed):
    """The image, or the program in it, is for another processor architecture than the host's."""

    code, status = "wrong_architecture", 422
    next_commands = (SEE_TEMPLATE,)


class WorkdirMissing(EngineFailed):
    """The image's working directory does not exist in the container."""

    code, status = "workdir_missing", 422
    next_commands = (SEE_TEMPLATE,)


class NotADirectory(EngineFailed):
    """The command, the working directory or a mount needs a directory where the container has a file, or the other way round."""

    code, status = "not_a_directory", 422
    next_commands = (SEE_TEMPLATE,)


class ContainerUserMissing(EngineFailed):
    """The user that the image or `run_as` names does not exist in the container or is outside its range of ids."""

    code, status = "container_user_missing", 422
    next_commands = (SEE_TEMPLATE,)


class ProgramsMissing(EngineFailed):
    """The host lacks a program with which Podman runs containers, such as conmon, crun or newuidmap; the message names it."""

    code, status = "programs_missing", 502
    next_commands = ("sudo apt-get install --reinstall podman conmon crun catatonit uidmap",)


class NetworkProgramsMissing(EngineFailed):
    """The host lacks netavark or aardvark-dns, with which Podman makes a network of workspaces."""

    code, status = "network_programs_missing", 502
    next_commands = ("sudo apt-get install netavark aardvark-dns iptables slirp4netns passt nftables",)


class MemoryTooSmall(EngineFailed):
    """The memory limit of the workspace is too small for its start."""

    code, status = "memory_too_small", 422
    next_commands = (more_memory,)


class ProcessesExhausted(EngineFailed):
    """The pids_limit of the workspace, or the limit of the Linux account, allows no more processes."""

    code, status, retryable = "processes_exhausted", 409, True
    next_commands = ("svc ws list",)


class ContainerNameTaken(EngineFailed):
    """A container that the user made by hand has the name of the workspace's container."""

    code, status = "container_name_taken", 409
    next_commands = ("podman rename svc-{workspace_id} mine-{workspace_id}",)


class SubidsMissing(EngineFailed):
    """The Linux account has no range of subordinate ids, or too small a one for the users of the image."""

    code, status = "subids_missing", 502
    next_commands = ("sudo svc admin create-user {user}",)


class CgroupRefused(EngineFailed):
    """The host refused to create the control group of the container or to set its limits."""

    code, status = "cgroup_refused", 502


class StorageDamaged(EngineFailed):
    """Podman's storage lacks parts of the container or its image, or cannot be read."""

    code, status = "storage_damaged", 502
    next_commands = ("svc ws delete {workspace}",)


class PodmanMoved(EngineFailed):
    """Podman's records in the home name directories of another user id, as before a change of the uid."""

    code, status = "podman_moved", 502


class ImageTooDeep(EngineFailed):
    """The image has more layers than Podman can mount; a Dockerfile with fewer instructions, or a flat image, helps."""

    code, status = "image_too_deep", 422
    next_commands = (SEE_TEMPLATE,)


class ImageUnusable(EngineFailed):
    """What the registry has under this name is no image of a container, or its configuration is malformed."""

    code, status = "image_unusable", 422
    next_commands = (SEE_TEMPLATE,)


class ImageRejected(EngineFailed):
    """A signature policy (containers-policy.json) of the user or the host rejects the image."""

    code, status = "image_rejected", 422
    next_commands = (SEE_TEMPLATE,)


class IdsOutOfRange(EngineFailed):
    """The image has a user, or files, of an id beyond the range of subordinate ids that accounts have."""

    code, status = "ids_out_of_range", 422
    next_commands = (SEE_TEMPLATE,)


class EnvironmentTooLarge(EngineFailed):
    """A variable, or all of them with the command, is longer than Linux takes."""

    code, status = "environment_too_large", 422
    next_commands = (SEE_TEMPLATE,)


class StorageLocked(EngineFailed):
    """Another process of the user holds a lock of Podman's storage for too long."""

    code, status, retryable = "storage_locked", 503, True
    next_commands = (start, again)


class ImageCorrupt(EngineFailed):
    """The registry's copy of the image is damaged or incomplete."""

    code, status, retryable = "image_corrupt", 502, True
    next_commands = (again,)


class ImageNotInRegistry(EngineFailed):
    """The registry has no image of this name and tag."""

    code, status = "image_not_in_registry", 404
    next_commands = (SEE_TEMPLATE,)


class RegistryLoginRequired(EngineFailed):
    """The registry refuses access without a login, or with the present one; `podman login` as the user opens it."""

    code, status = "registry_login_required", 502
    next_commands = ("podman login {registry}", "svc image allowlist")


class RegistryTls(EngineFailed):
    """The registry's certificate is not trusted or not for its name, or it does not speak TLS."""

    code, status = "registry_tls", 502
    next_commands = ("svc image allowlist",)


class RegistryNameUnknown(EngineFailed):
    """The host name of the registry cannot be resolved."""

    code, status = "registry_name_unknown", 502
    next_commands = (SEE_TEMPLATE,)


class RegistryUnreachable(EngineFailed):
    """The registry does not accept connections, or the connection broke."""

    code, status, retryable = "registry_unreachable", 502, True
    next_commands = (again,)


class RegistryTimeout(EngineFailed):
    """The registry did not answer in time."""

    code, status, retryable = "registry_timeout", 504, True
    next_commands = (again,)


class RegistryBusy(EngineFailed):
    """The registry refuses further downloads for a while (429)."""

    code, status, retryable = "registry_busy", 502, True
    next_commands = (again,)


class RegistryFailed(EngineFailed):
    """The registry reported an error of its own."""

    code, status, retryable = "registry_failed", 502, True
    next_commands = (again,)


CAUSES: dict[str, type[SvcError]] = {
    kind.code: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, SvcError) and kind.__module__ == __name__
}
