"""Causes of failure, found in an engine's words: a code of the protocol and a message of ours.

The words are those of Podman 4.3 and its storage, of crun, of catatonit (the first process
of a workspace) and of skopeo. They are untrusted and in any order; the first row that has
one of its signs counts, so that the precise rows come first.
"""

from __future__ import annotations

Row = tuple[str, str, tuple[str, ...]]  # code, message, signs in lower case

_STORE: tuple[Row, ...] = (
    ("storage_full", "there is no space left for containers and images", ("no space left on device",)),
    ("disk_quota_exceeded", "your disk quota is used up", ("disk quota exceeded",)),
    ("subids_missing", "the account has too few subordinate ids for the users of this image",
     ("insufficient uids or gids", "no subuid ranges", "no subgid ranges", "requires additional uids or gids",
      "newuidmap", "newgidmap")),
    ("processes_exhausted",
     "the workspace's pids_limit, or the account's own limit, allows no more processes",
     ("resource temporarily unavailable", "failed to create new os thread", "pthread_create failed")),
    ("storage_damaged", "the storage of this container or its image is damaged",
     ("mounting storage for container", "correcting link for layer", "layer not known", "invalid database",
      "invalid internal status", "storage/overlay/")),
    ("storage_locked", "another process holds the locks of the storage for too long",
     ("acquiring lock", "database is locked", "storage.lock", "bolt_state.db: timeout")),
)  # fmt: skip
_IMAGE_OF_OTHERS = "the image, or the program in it, is for another processor architecture"
_CONTAINER: tuple[Row, ...] = (
    *_STORE,
    ("image_missing", "the image is not in this user's store", ("image not known",)),
    ("not_found", "the container does not exist", ("no such container",)),
    ("container_name_taken", "another container of this user has the workspace's name",
     ("name is already in use",)),
    ("failed", "a GPU of this workspace is not available on this host", ("cdi device",)),
    ("memory_too_small", "the memory limit is too small to start it",
     ("memory limit too low", "minimum memory limit", "memory.max", "memory.limit_in_bytes")),
    ("cgroup_refused", "the host refuses to set the limits of a container of this account",
     ("/sys/fs/cgroup", "cgroup controller", "cgroups controller", "sd-bus call",
      "interactive authentication required")),
    ("wrong_architecture", _IMAGE_OF_OTHERS, ("exec format error",)),
    ("workdir_missing", "the working directory does not exist in the container",
     ("does not exist on container", "chdir")),
    ("not_a_directory", "a file is where a directory is needed, or the other way round",
     ("not a directory", "is a directory")),
    ("container_user_missing", "the image's user does not exist in the container",
     ("unable to find user", "unable to find group", "no matching entries in", "cannot setresuid",
      "cannot setresgid")),
    ("command_not_found", "the command is not in the image, or the interpreter that it names is not",
     ("executable file", "a command that was not found", "failed to exec pid1: no such file",
      "missing dynamic library")),
    ("command_not_executable", "the command may not be executed", ("open executable", "failed to exec pid1",
     "exec container process", "oci permission denied")),
)  # fmt: skip
_REGISTRY: tuple[Row, ...] = (
    *_STORE,
    ("image_corrupt", "the registry's copy of the image is damaged or incomplete",
     ("digest did not match", "error fetching blob", "gzip: invalid", "invalid tar header")),
    ("wrong_architecture", "the registry has the image for other platforms only",
     ("no image found in manifest list", "no image found in image index")),
    ("registry_busy", "the registry allows no more downloads for a while",
     ("too many requests", "toomanyrequests", "rate limit")),
    ("registry_tls", "the registry cannot be reached securely",
     ("x509:", "certificate", "http response to https", "tls:")),
    ("registry_name_unknown", "the host name of the registry is not known",
     ("no such host", "server misbehaving", "name resolution")),
    ("registry_timeout", "the registry did not answer in time", ("timeout", "deadline exceeded")),
    ("registry_unreachable", "the registry does not answer",
     ("connection refused", "no route to host", "network is unreachable", "connection reset", ": eof",
      "unexpected eof", "broken pipe")),
    ("image_not_in_registry", "the registry has no such image",
     ("manifest unknown", "name unknown", "not found", "name not known")),
    ("registry_login_required", "the registry refuses access",
     ("unauthorized", "authentication required", "denied", "forbidden")),
    ("registry_failed", "the registry reported an error of its own",
     ("invalid status code from registry", "pinging container registry", "dial tcp")),
)  # fmt: skip


def of_container(untrusted_text: str) -> tuple[str, str]:
    """Code and message for the words of an engine that could not handle a container."""
    return _first(_CONTAINER, untrusted_text.lower()) or ("failed", "Podman reported an error")


def of_registry(untrusted_text: str, image: str) -> tuple[str, str]:
    """Code and message for the words of an engine that could not read or pull an image."""
    text = untrusted_text.lower()
    for name in (image, image.rpartition("@")[0] or image.rpartition(":")[0], image.partition("/")[2]):
        text = text.replace(name.lower(), "") if name else text  # an image may be named after a cause
    return _first(_REGISTRY, text) or ("failed", "the image could not be pulled")


def of_start(untrusted_output: str) -> tuple[str, str] | None:
    """Code and message for the last line of a container whose command never began; None for others."""
    line = last_line(untrusted_output).lower()
    if line.startswith(("error (catatonit:", '{"msg":"exec container process')):
        return _first(_CONTAINER, line)
    return None


def last_line(untrusted_output: str) -> str:
    """The last line that is not empty."""
    return untrusted_output.rstrip().rpartition("\n")[2]


def _first(rows: tuple[Row, ...], text: str) -> tuple[str, str] | None:
    for code, message, signs in rows:
        if any(sign in text for sign in signs):
            return code, message
    return None


def no_space(error: str) -> bool:
    """Whether an engine's error (in lower case) reports a full disk or quota."""
    return "no space left on device" in error or "disk quota exceeded" in error
