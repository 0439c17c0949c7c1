"""Causes of failure, found in an engine's words: a code of the protocol and a message of ours.

The words are those of Podman 4.3 and 5.4 and their storage, of crun, of catatonit (the first process
of a workspace) and of skopeo. They are untrusted and in any order; the first row that has
one of its signs counts, so that the precise rows come first. A sign is in the words of one
cause and no other: not what Podman appends to every error of a kind ("OCI permission
denied", "a command that was not found"), and not a path that many errors name.
"""

from __future__ import annotations

import re

# Code, message, signs in lower case; `*` in a sign is anything between.
Row = tuple[str, str, tuple[str, ...]]

# What the kernel answers to whoever asks for one namespace more, in the words of a full disk.
_NAMESPACES: Row = (
    "failed", "the kernel makes no more namespaces for this account (`sysctl user`: max_*_namespaces)",
    ("create* namespace*: no space left", "creating new mount namespace*: no space left",
     "clone: no space left", "unshare (clone_new*: no space left", "cannot clone: no space left",
     "fork/exec /*: no space left"),
)  # fmt: skip
_STORE: tuple[Row, ...] = (
    _NAMESPACES,
    ("failed", "the kernel keeps no more keys for this account (kernel.keys.maxkeys)",
     ("create keyring",)),
    ("storage_full", "there is no space left for containers and images",
     ("no space left on device", "database or disk is full")),
    ("disk_quota_exceeded", "your disk quota is used up", ("disk quota exceeded",)),
    ("subids_missing", "the account has too few subordinate ids for the users of this image",
     ("insufficient uids or gids", "no subuid ranges", "no subgid ranges", "requires additional uids or gids",
      "newuidmap", "newgidmap")),
    ("storage_locked", "another process holds the locks of the storage for too long",
     ("acquiring lock", "database is locked", "storage.lock", "bolt_state.db: timeout")),
    ("processes_exhausted",
     "the workspace's pids_limit, or the account's own limit, allows no more processes",
     ("resource temporarily unavailable", "failed to create new os thread", "pthread_create failed")),
    ("image_too_deep", "the image has more layers than Podman can mount", ("max depth exceeded",)),
    ("storage_damaged", "the storage of this container or its image is damaged",
     ("mounting storage for container*no such", "stat *storage/overlay/*no such file",
      "faccessat *storage/overlay/*no such file", "stat *storage/overlay-containers/*no such file",
      "correcting link for layer", "layer not known", "invalid database",
      "from store*container not known", "file is not a database", "database disk image is malformed")),
    ("failed", "Podman has lost its namespaces; `podman system migrate` makes new ones",
     ("invalid internal status",)),
)  # fmt: skip
_IMAGE_OF_OTHERS = "the image, or the program in it, is for another processor architecture"
_NETWORK: Row = (
    "network_programs_missing", "Podman on this host lacks the program that connects containers",
    ("could not find slirp4netns", "could not find pasta", 'exec: "slirp4netns"', 'exec: "pasta"',
     "could not find \"netavark\"", "could not find \"aardvark-dns\"", "unable to execute nft",
     "netavark: no such file or directory (os error 2)"),
)  # fmt: skip
_CONTAINER: tuple[Row, ...] = (
    *_STORE,
    _NETWORK,
    ("image_missing", "the image is not in this user's store", ("image not known",)),
    ("not_found", "the container does not exist", ("no such container",)),
    ("container_name_taken", "another container of this user has the workspace's name",
     ("name is already in use",)),
    ("image_unusable", "the configuration of this image is malformed",
     ("env fields from image failed to parse", "invalid signal", "invalid environment variable")),
    ("failed", "a GPU of this workspace is not available on this host", ("cdi device",)),
    ("memory_too_small", "the memory limit is too small to start it",
     ("memory limit too low", "minimum memory limit", "memory.max*busy", "memory.limit_in_bytes*busy")),
    ("cgroup_refused", "the host refuses to set the limits of a container of this account",
     ("/sys/fs/cgroup", "cgroup controller", "cgroups controller", "memory.max", "sd-bus call",
      "interactive authentication required")),
    ("environment_too_large",
     "the command with its variables is longer than Linux takes: 128 KiB for each, 2 MiB together",
     ("argument list too long",)),
    ("wrong_architecture", _IMAGE_OF_OTHERS, ("exec format error",)),
    ("workdir_missing", "the working directory does not exist in the container",
     ("does not exist on container", "chdir*no such file")),
    ("workdir_missing", "the image's user may not enter the working directory", ("chdir*permission denied",)),
    ("not_a_directory", "a directory that the container needs is a link to nothing in the image",
     ("openat2 `*no such file", "openat2 `*too many levels", "open /dev directory in *no such file",
      "open /etc in the container: no such file", "the target `*` is invalid")),
    ("not_a_directory", "a file is where a directory is needed, or the other way round",
     ("not a directory", "is a directory")),
    ("container_user_missing", "the image's user does not exist in the container",
     ("unable to find user", "unable to find group", "no matching entries in", "cannot setresuid",
      "cannot setresgid")),
    ("command_not_found", "the image has no command, and neither the template nor the workspace names one",
     ("no command or entrypoint provided", "cannot find `` in $path")),
    ("command_not_found",
     "the command is not in the image, or the interpreter that its first line names is not (with Windows line"
     " ends none is), or its loader is not",
     ("executable file `", "failed to exec pid1: no such file", "missing dynamic library")),
    ("command_not_executable", "the command may not be executed",
     ("open executable*permission denied", "open executable*not permitted",
      "failed to exec pid1: permission denied", "exec container process*permission denied",
      "the path `*` is not a regular file", "exists but it is not executable")),
)  # fmt: skip
_DAMAGED_COPY = "the registry's copy of the image is damaged or incomplete"
_REGISTRY: tuple[Row, ...] = (
    *_STORE,
    ("image_unusable", "this is no image of a container", ("image-specific operation on artifact",)),
    ("image_corrupt", _DAMAGED_COPY,
     ("error fetching blob: invalid status code from registry 404", "blob unknown")),
    ("registry_failed", "the registry reported an error of its own",
     ("received unexpected http status: 5", "invalid status code from registry 5", "statuscode: 5",
      "stopped after 10 redirects")),
    ("registry_login_required", "the registry refuses access",
     ("error fetching blob: invalid status code from registry 40", ": denied: ", "statuscode: 401",
      "statuscode: 403")),
    ("image_unusable", "the configuration of this image is malformed",
     ("parsing image configuration", "go struct field image")),
    ("image_rejected",
     "a policy.json, yours (~/.config/containers) or the host's (/etc/containers), rejects this image",
     ("is rejected by policy", "source image rejected")),
    ("registry_login_required",
     "the program that keeps your logins (credHelpers in ~/.docker/config.json) does not work here",
     ("docker-credential-", "error getting credentials")),
    ("registry_login_required", "a file of your logins (auth.json, ~/.docker/config.json) cannot be read",
     ("reading json file",)),
    ("image_corrupt", _DAMAGED_COPY,
     ("digest did not match", "does not match config's diffid", "gzip: invalid", "pigz: ",
      "invalid tar header", "processing tar file(unexpected eof",
      'storing blob to file "*": unexpected eof')),
    ("wrong_architecture", "the registry has the image for other platforms only",
     ("no image found in manifest list", "no image found in image index")),
    ("registry_busy", "the registry allows no more downloads for a while",
     ("too many requests", "toomanyrequests", "rate limit", "http 429 response")),
    ("registry_tls", "the registry cannot be reached securely",
     ("x509:", "certificate", "http response to https", "tls:")),
    ("registry_name_unknown", "the host name of the registry is not known",
     ("no such host", "server misbehaving", "name resolution")),
    ("registry_timeout", "the registry did not answer in time", ("timeout", "deadline exceeded")),
    ("registry_unreachable", "the registry does not answer",
     ("connection refused", "no route to host", "network is unreachable", "connection reset", ": eof",
      "unexpected eof", "broken pipe")),
    ("image_not_in_registry", "what answers under this name is no registry of images",
     ("pinging container registry*404 (not found)",)),
    ("failed", "a file or directory that the pull needs may not be used", ("permission denied",)),
    ("image_not_in_registry", "the registry has no such image",
     ("manifest unknown", "name unknown", "not found", "name not known", "statuscode: 404")),
    ("registry_login_required", "the registry refuses access",
     ("unauthorized", "authentication required", "denied", "forbidden")),
    ("registry_failed", "the registry reported an error of its own",
     ("invalid status code from registry", "statuscode: ", "pinging container registry", "dial tcp")),
)  # fmt: skip

_SERVICE: tuple[Row, ...] = (
    ("podman_moved",
     "Podman's records are of another user id, as before a change of the uid; without its bolt_state.db"
     " (db.sql) it starts, and images stay",
     ("runroot is pointing to a path*not writable", "creating events dirs*/run/user/*denied")),
    _NETWORK,
    _NAMESPACES,
)  # fmt: skip
# A program of the host that Podman did not find; of the image it says "not found" too, in other words.
_PROGRAM = re.compile(
    r"could not find a working (conmon) binary"
    r'|default oci runtime "(crun|runc)" not found'
    r"|fork/exec /[a-z/]*/(conmon|crun|runc): no such file"
    r"|container-init binary not found on the host: (?:stat|faccessat) /[a-z/]*/(catatonit)"
    r"|crun: (?:error stat'ing file|cannot stat) `/[a-z/]*/(catatonit)`: no such file"
    r'|exec: \\?"(newuidmap|newgidmap|catatonit)\\?": executable file not found'
    r"|/bin/sh: 1: exec: (podman): not found"
)
_ELF_AS_SCRIPT = re.compile(
    r"^(?:[^\n:]{1,256}: ){1,2}(?:line )?1: \x7fELF|^(/[^\n:]{0,256}): \1: cannot execute binary file$",
    re.MULTILINE,
)
_PAGE = re.compile(r"(statuscode: \d{3}), .*", re.DOTALL)  # what answered, as a proxy, may say anything
_IDS_OF_AN_ACCOUNT = 65536  # as useradd gives them; larger images need a range of the administrator's
_NEEDED_IDS = re.compile(
    r"requested (\d{1,10}):(\d{1,10}) for |cannot setres[ug]id to `?(\d{1,10})`?: invalid argument"
)


def of_container(untrusted_text: str) -> tuple[str, str]:
    """Code and message for the words of an engine that could not handle a container."""
    text = untrusted_text.lower()
    return _program(text) or _ids(text) or _first(_CONTAINER, text) or ("failed", "Podman reported an error")


def of_registry(untrusted_text: str, image: str) -> tuple[str, str]:
    """Code and message for the words of an engine that could not read or pull an image."""
    text = untrusted_text.lower()
    for name in (image, image.rpartition("@")[0] or image.rpartition(":")[0], image.partition("/")[2]):
        text = text.replace(name.lower(), "") if name else text  # an image may be named after a cause
    text = _PAGE.sub(r"\1", text)
    return (
        _program(text) or _ids(text) or _first(_REGISTRY, text) or ("failed", "the image could not be pulled")
    )


def of_service(untrusted_log: str) -> tuple[str, str]:
    """Code and message for the words of a Podman that does not start."""
    text = untrusted_log.lower()
    return _program(text) or _first(_SERVICE, text) or ("unavailable", "Podman does not start")


def of_start(untrusted_output: str) -> tuple[str, str] | None:
    """Code and message for the last lines of a container whose command never began; None for others.

    What the kernel refuses to execute, catatonit gives to the image's shell, which reads the program as text.
    """
    if _ELF_AS_SCRIPT.search(untrusted_output):
        return "wrong_architecture", _IMAGE_OF_OTHERS
    line = last_line(untrusted_output).lower()
    if line.startswith(("error (catatonit:", '{"msg":"exec container process')):
        return _first(_CONTAINER, line)
    return None


def last_line(untrusted_output: str) -> str:
    """The last line that is not empty."""
    return untrusted_output.rstrip().rpartition("\n")[2]


def _first(rows: tuple[Row, ...], text: str) -> tuple[str, str] | None:
    for code, message, signs in rows:
        if any(_has(text, sign) for sign in signs):
            return code, message
    return None


def _has(text: str, sign: str) -> bool:
    """Whether the parts of a sign are in the text, one after another."""
    at = 0
    for part in sign.split("*"):
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _program(text: str) -> tuple[str, str] | None:
    """The cause of a program of the host that is missing."""
    if found := _PROGRAM.search(text):
        name = next(filter(None, found.groups()))
        return "programs_missing", f"{name} is missing on this host; Podman runs no containers without it"
    return None


def _ids(text: str) -> tuple[str, str] | None:
    """The cause of an id that no ordinary account has: more subordinate ids would not help."""
    found = _NEEDED_IDS.search(text)
    largest = max(int(number) for number in found.groups() if number) if found else 0
    if largest < _IDS_OF_AN_ACCOUNT:
        return None
    return (
        "ids_out_of_range",
        f"the image has a user or a file of the id {largest}; accounts have ids below {_IDS_OF_AN_ACCOUNT}:"
        " build it again with such ids",
    )


def no_space(error: str) -> bool:
    """Whether an engine's error (in lower case) reports a full disk or quota."""
    return "no space left on device" in error or "disk quota exceeded" in error
