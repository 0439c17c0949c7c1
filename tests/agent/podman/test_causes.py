"""What causes are told from the words of Podman 4.3.1, crun 1.8.1, catatonit and skopeo.

The words are real: each was printed on Debian 12 for the cause that it stands for, those of
Podman 5 on Debian 13, but for those marked as of other versions or of kernels with what the
test machines lack.
"""

from __future__ import annotations

import pytest

from svc.engine_errors import CAUSES
from svc_helper.agent.calls import shortened
from svc_helper.agent.podman import causes
from svc_helper.wire.protocol import CODES

IMAGE = "127.0.0.1:5999/base:1"
REPOSITORY = "127.0.0.1:5999/base"
PING = "initializing source docker://127.0.0.1:5990/base:1: pinging container registry 127.0.0.1:5990: "
GET = 'Get "https://127.0.0.1:5990/v2/": '
LAYER = "/home/demo/.local/share/containers/storage/overlay/ec7260b1ba02bf2f"
RECORDS = "/home/demo/.local/share/containers/storage/overlay-containers"
CONTAINER = "9779dfc479241e26b092a04d0b1b27ff06cc44188e20aa4d4d59df64657ca669"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("crun: executable file `/no/such` not found in $PATH: No such file or directory: OCI runtime"
         " attempted to invoke a command that was not found", "command_not_found"),
        ("crun: open executable: Permission denied: OCI permission denied", "command_not_executable"),
        ("crun: open executable: Operation not permitted: OCI permission denied", "command_not_executable"),
        ("crun: open executable: Not a directory: OCI runtime error", "not_a_directory"),
        ("crun: mkdir `/etc/passwd/x`: Not a directory: OCI runtime error", "not_a_directory"),
        ("unable to find user 0: read /home/demo/data: is a directory", "not_a_directory"),
        (f'workdir "/bin/sh" exists on container {CONTAINER}, but is not a directory', "not_a_directory"),
        (f'workdir "/no/dir" does not exist on container {CONTAINER}', "workdir_missing"),
        ("unable to find user nobodyhere: no matching entries in passwd file", "container_user_missing"),
        ("crun: cannot setresuid to 12345678: Invalid argument: OCI runtime error", "ids_out_of_range"),
        (f"{REPOSITORY}/none:1: image not known", "image_missing"),
        (f'creating container storage: the container name "c1" is already in use by {CONTAINER}. You have to'
         " remove that container to be able to reuse that name: that name is already in use",
         "container_name_taken"),
        ("crun: create `/sys/fs/cgroup/nope`: Permission denied: OCI permission denied", "cgroup_refused"),
        ("setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=9", "failed"),
        ('/usr/bin/slirp4netns failed: "fork: Resource temporarily unavailable\\n"', "processes_exhausted"),
        (f"mounting storage for container {CONTAINER}: stat {LAYER}: no such file or directory",
         "storage_damaged"),
        (f"stat {LAYER}: no such file or directory", "storage_damaged"),
        ("layer not known", "storage_damaged"),
        ("opening database /home/demo/.local/share/containers/storage/libpod/bolt_state.db: invalid database",
         "storage_damaged"),
        ("keep-id requires additional UIDs or GIDs defined in /etc/subuid and /etc/subgid to function"
         " correctly: %!w(<nil>)", "subids_missing"),
        ('cannot find UID/GID for user demo: no subuid ranges found for user "demo" in /etc/subuid',
         "subids_missing"),
        (f"mkdir {LAYER}/work: no space left on device", "storage_full"),
        (f"mkdir {LAYER}/work: disk quota exceeded", "disk_quota_exceeded"),
        # of runc and Docker; crun names the file that the kernel refused
        ("container init was OOM-killed (memory limit too low?)", "memory_too_small"),
        ("crun: write `memory.max`: Device or resource busy: OCI runtime error", "memory_too_small"),
        # Podman appends "a command that was not found" to whatever crun did not find.
        ("crun: openat2 `work`: No such file or directory: OCI runtime attempted to invoke a command that was"
         " not found", "not_a_directory"),
        ("crun: openat2 `work`: Too many levels of symbolic links: OCI runtime error", "not_a_directory"),
        (f"crun: open /dev directory in `{LAYER}/merged`: No such file or directory: OCI runtime attempted to"
         " invoke a command that was not found", "not_a_directory"),
        ("crun: the target `/proc` is invalid: Not a directory: OCI runtime error", "not_a_directory"),
        ("open /etc in the container: no such file or directory", "not_a_directory"),
        ("crun: mount `/home/demo/work` to `work`: Permission denied: OCI permission denied", "failed"),
        (f"mounting storage for container {CONTAINER}: max depth exceeded", "image_too_deep"),
        ("crun: cannot setresuid to 1000650000: Invalid argument: OCI runtime error", "ids_out_of_range"),
        ('env fields from image failed to parse: invalid environment variable: "=x"', "image_unusable"),
        ("invalid signal: SIGFOO", "image_unusable"),
        # of Podman 5 and crun 1.21
        ("container-init binary not found on the host: faccessat /usr/libexec/podman/catatonit: no such file"
         " or directory", "programs_missing"),
        ('lookup init binary: exec: "catatonit": executable file not found in $PATH', "programs_missing"),
        ("crun: cannot stat `/usr/libexec/podman/catatonit`: No such file or directory: OCI runtime attempted"
         " to invoke a command that was not found", "programs_missing"),
        ("crun: cannot find `` in $PATH: No such file or directory: OCI runtime attempted to invoke a"
         " command that was not found", "command_not_found"),
        ("database or disk is full", "storage_full"),
        (f'getting container from store "{CONTAINER}": container not known', "storage_damaged"),
        ('could not find pasta, the network namespace can\'t be configured: exec: "pasta": executable file'
         " not found in $PATH", "network_programs_missing"),
        ("the path `/etc` is not a regular file: Operation not permitted", "command_not_executable"),
        ("crun: the path `/data/plain` exists but it is not executable: Operation not permitted: OCI"
         " permission denied", "command_not_executable"),
        ("OCI runtime error: crun: cannot open `/etc/passwd/x`: Not a directory", "not_a_directory"),
        (f'detecting workdir "/etc/passwd/x" on container {CONTAINER}: stat {LAYER}/merged/etc/passwd/x: not'
         " a directory", "not_a_directory"),
        ("OCI runtime error: crun: cannot setresuid to `12345678`: Invalid argument", "ids_out_of_range"),
        ("crun: creating `/link`: openat2 `link`: No such file or directory: OCI runtime attempted to invoke"
         " a command that was not found", "not_a_directory"),
        (f"mounting storage for container {CONTAINER}: faccessat {LAYER}: no such file or directory",
         "storage_damaged"),
        (f"mounting storage for container {CONTAINER}: no such container", "storage_damaged"),
        (f'getting graph driver info "{CONTAINER}": faccessat {LAYER}: no such file or directory',
         "storage_damaged"),
        (f'unable to determine if "{RECORDS}/{CONTAINER}/userdata/shm" is mounted: lstat'
         f" {RECORDS}/{CONTAINER}: no such file or directory", "storage_damaged"),
        ("beginning transaction: file is not a database", "storage_damaged"),
        ("database disk image is malformed", "storage_damaged"),
        ("netavark: nftables error: unable to execute nft: No such file or directory (os error 2)",
         "network_programs_missing"),
        ('could not find "netavark" in one of [/usr/libexec/podman /usr/lib/podman].',
         "network_programs_missing"),
        # of kernels whose user.max_*_namespaces are reached
        (f"creating network namespace for container {CONTAINER}: failed to create namespace: no space left on"
         " device", "failed"),
        ("failed to start slirp4netns process: fork/exec /usr/bin/slirp4netns: no space left on device",
         "failed"),
        ("crun: clone: No space left on device: OCI runtime error", "failed"),
        ("crun: unshare (CLONE_NEWCGROUP): No space left on device: OCI runtime error", "failed"),
        # of kernels whose limit of keys is reached
        ("crun: create keyring `9779dfc4`: Disk quota exceeded: OCI runtime error", "failed"),
        # of a host that lacks a program of Podman's
        ("fork/exec /usr/bin/conmon: no such file or directory", "programs_missing"),
        ("removing container 4b48f6b8 from runtime: `/usr/bin/crun delete --force 4b48f6b8` failed: fork/exec"
         " /usr/bin/crun: no such file or directory", "programs_missing"),
        ("crun: error stat'ing file `/usr/libexec/podman/catatonit`: No such file or directory: OCI runtime"
         " attempted to invoke a command that was not found", "programs_missing"),
        ("container-init binary not found on the host: stat /usr/libexec/podman/catatonit: no such file or"
         " directory", "programs_missing"),
        ("netavark: No such file or directory (os error 2)", "network_programs_missing"),
        ("no command or entrypoint provided, and no CMD or ENTRYPOINT from image", "command_not_found"),
        ("something that nobody foresaw", "failed"),
    ],
)  # fmt: skip
def test_containers(words: str, code: str) -> None:
    found, message = causes.of_container(words)
    assert found == code
    assert words not in message


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (f"reading manifest nope in {REPOSITORY}: manifest unknown: manifest unknown",
         "image_not_in_registry"),
        (f"reading manifest 1 in {REPOSITORY}: name unknown: repository name not known to registry",
         "image_not_in_registry"),
        (f"reading manifest 1 in {REPOSITORY}: unauthorized: authentication required",
         "registry_login_required"),
        ("requested access to the resource is denied", "registry_login_required"),
        (f"{PING}invalid status code from registry 403 (Forbidden)", "registry_login_required"),
        (f"{PING}{GET}x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
         "registry_tls"),
        (f"{PING}{GET}http: server gave HTTP response to HTTPS client", "registry_tls"),
        (f"{PING}{GET}dial tcp 127.0.0.1:5990: connect: connection refused", "registry_unreachable"),
        (f"{PING}{GET}dial tcp: lookup no-such-host.invalid on 10.0.0.53:53: no such host",
         "registry_name_unknown"),
        (f"{PING}{GET}dial tcp 10.9.9.9:443: i/o timeout", "registry_timeout"),
        (f"{PING}{GET}net/http: TLS handshake timeout", "registry_timeout"),
        (f"{PING}too many requests to registry", "registry_busy"),
        (f"{PING}invalid status code from registry 500 (Internal Server Error)", "registry_failed"),
        ('writing blob: storing blob to file "/var/tmp/storage3801765648/1": happened during read: Digest did'
         " not match, expected sha256:540937d8, got sha256:7d3c7517", "image_corrupt"),
        ("reading blob sha256:540937d8: Error fetching blob: invalid status code from registry 404"
         " (Not Found)", "image_corrupt"),
        ("reading blob sha256:540937d8: Error fetching blob: invalid status code from registry 403"
         " (Forbidden)", "registry_login_required"),
        ("reading blob sha256:540937d8: Error fetching blob: invalid status code from registry 500"
         " (Internal Server Error)", "registry_failed"),
        ("parsing image configuration: Error fetching blob: invalid status code from registry 404 (Not"
         " Found)", "image_corrupt"),
        ('writing blob: storing blob to file "/var/tmp/storage1703932332/1": unexpected EOF',
         "image_corrupt"),
        ('writing blob: storing blob to file "/var/tmp/storage1491797602/1": happened during read: unexpected'
         " EOF", "registry_unreachable"),
        ('writing blob: adding layer with blob "sha256:ad881638": processing tar file(unexpected EOF): exit'
         " status 1", "image_corrupt"),
        (f"reading manifest 1 in {REPOSITORY}: denied: permission denied for pull",
         "registry_login_required"),
        (f"reading manifest 1 in {REPOSITORY}: StatusCode: 404, <html>x509: certificate, timeout</html>",
         "image_not_in_registry"),
        (f"reading manifest 1 in {REPOSITORY}: StatusCode: 403, <html>not found</html>",
         "registry_login_required"),
        (f"reading manifest 1 in {REPOSITORY}: received unexpected HTTP status: 503 Service Unavailable",
         "registry_failed"),
        ('Get "/v2/base/manifests/1": stopped after 10 redirects', "registry_failed"),
        (f"{PING}invalid status code from registry 404 (Not Found)", "image_not_in_registry"),
        ("choosing an image from manifest list docker://reg/x: no image found in manifest list for"
         ' architecture amd64, variant "", OS linux', "wrong_architecture"),
        ('writing blob: adding layer with blob "sha256:d8ab554a": processing tar file(potentially'
         " insufficient UIDs or GIDs available in user namespace (requested 1234:1234 for /b): Check"
         " /etc/subuid and /etc/subgid if configured locally and run podman-system-migrate: lchown /b:"
         " invalid argument): exit status 1", "subids_missing"),
        ('writing blob: adding layer with blob "sha256:8c39d85a": processing tar file(potentially'
         " insufficient UIDs or GIDs available in user namespace (requested 1516583083:1000621001 for /big):"
         " Check /etc/subuid and /etc/subgid if configured locally and run podman-system-migrate: lchown"
         " /big: invalid argument): exit status 1", "ids_out_of_range"),
        ("writing blob: storing blob to file: write /var/tmp/x: no space left on device", "storage_full"),
        ("parsing image configuration: unsupported image-specific operation on artifact with type"
         ' "application/vnd.cncf.helm.config.v1+json"', "image_unusable"),
        ("parsing image configuration: json: cannot unmarshal string into Go struct field"
         " ImageConfig.config.Cmd of type []string", "image_unusable"),
        ('parsing image configuration: parsing time ""yesterday"" as "2006": cannot parse', "image_unusable"),
        (f"Source image rejected: Running image docker://{IMAGE} is rejected by policy.", "image_rejected"),
        ("getting username and password: 1 error occurred:\n\t* error getting credentials - err:"
         ' exec: "docker-credential-desktop": executable file not found in $PATH, out: ``',
         "registry_login_required"),
        ('getting username and password: 1 error occurred:\n\t* reading JSON file'
         ' "/home/demo/.docker/config.json":'
         " invalid character 'n' looking for beginning of object key string", "registry_login_required"),
        ("open /run/user/1001/containers/x: permission denied", "failed"),
        # of Podman 5, which tells the last cause alone
        ("denied", "registry_login_required"),
        ("blob unknown", "image_corrupt"),
        ('writing blob: layer 0 (blob "sha256:abc49800"/""/"sha256:abc49800") does not match config\'s DiffID'
         ' "sha256:d0578e06"', "image_corrupt"),
        ('writing blob: storing blob to file "/var/tmp/container_images_storage4230192460/1": pigz: skipping:'
         " <stdin>: corrupted -- incomplete deflate data: exit status 1", "image_corrupt"),
        ("json: cannot unmarshal string into Go struct field ImageConfig.config.Cmd of type []string",
         "image_unusable"),
        ("tls: first record does not look like a TLS handshake", "registry_tls"),
        ("error parsing HTTP 429 response body: invalid character '<' looking for beginning of value:"
         ' "<html>e</html>"', "registry_busy"),
        ("something that nobody foresaw", "failed"),
    ],
)  # fmt: skip
def test_registries(words: str, code: str) -> None:
    assert causes.of_registry(words, IMAGE)[0] == code


@pytest.mark.parametrize("image", ["reg.example/denied:timeout", "denied.example/x509:unauthorized"])
def test_an_image_may_be_named_after_a_cause(image: str) -> None:
    words = f"reading manifest in {image.rpartition(':')[0]}: {image}: manifest unknown"
    assert causes.of_registry(words, image)[0] == "image_not_in_registry"


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("ERROR (catatonit:2): failed to exec pid1: No such file or directory\n", "command_not_found"),
        ("ERROR (catatonit:2): failed to exec pid1: Permission denied\n", "command_not_executable"),
        ('{"msg":"exec container process `/run/podman-init`: Argument list too long","level":"error"}',
         "environment_too_large"),
        ("ERROR (catatonit:2): failed to exec pid1: Not a directory\n", "not_a_directory"),
        ("ERROR (catatonit:2): failed to exec pid1: Exec format error\n", "wrong_architecture"),
        ('{"msg":"exec container process `/bin/arm`: Exec format error","level":"error"}',
         "wrong_architecture"),
        ('{"msg":"exec container process (missing dynamic library?) `/bin/x`: No such file or directory"}',
         "command_not_found"),
        ("of a run before\nERROR (catatonit:2): failed to exec pid1: Exec format error\n\n",
         "wrong_architecture"),
        # of the shells to which catatonit gives what the kernel does not execute: busybox, dash, bash
        ("/arm: line 1: \x7fELF\x02\x01\x01\x03: not found\n/arm: line 2: syntax error: unexpected \"(\"\n",
         "wrong_architecture"),
        ("/arm: 1: \x7fELF\x02\x01\x01: not found\n", "wrong_architecture"),
        ("/arm: /arm: cannot execute binary file\n", "wrong_architecture"),
        ("sh: /work/x: /work/y: cannot execute binary file\n", None),
        ("cp: permission denied: no such file or directory\n", None),
        ("ERROR (catatonit:2): failed to exec pid1: Permission denied\nits own last line\n", None),
        ("", None),
    ],
)  # fmt: skip
def test_commands_that_never_began(output: str, code: str | None) -> None:
    """A program's own words, which may be the same, are no cause."""
    assert (causes.of_start(output) or (None,))[0] == code


@pytest.mark.parametrize(
    "words",
    [
        "potentially insufficient UIDs or GIDs available in user namespace (requested 1000621001:0 for /b)",
        "crun: cannot setresgid to 1000621001: Invalid argument: OCI runtime error",
    ],
)
def test_an_id_that_no_account_has_is_named(words: str) -> None:
    assert "1000621001" in causes.of_container(words)[1]
    assert "1000621001" in causes.of_registry(words, IMAGE)[1]


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        ("Error: could not find a working conmon binary (configured options: [/usr/libexec/podman/conmon"
         " /usr/bin/conmon]: invalid argument)", "programs_missing", "conmon"),
        ('Error: default OCI runtime "crun" not found: invalid argument', "programs_missing", "crun"),
        ("/bin/sh: 1: exec: podman: not found", "programs_missing", "podman"),
        ('Error: command required for rootless mode with multiple IDs: exec: "newuidmap": executable file not'
         " found in $PATH", "programs_missing", "newuidmap"),
        ('level=error msg="invalid internal status, try resetting the pause process with \\"podman system'
         ' migrate\\": command required for rootless mode with multiple IDs: exec: \\"newuidmap\\":'
         ' executable file not found in $PATH"', "programs_missing", "newuidmap"),
        ('Error: could not find "netavark" in one of [/usr/libexec/podman /usr/lib/podman].  To resolve this'
         " error, set the helper_binaries_dir key", "network_programs_missing", ""),
        ("something that nobody foresaw", "unavailable", ""),
    ],
)  # fmt: skip
def test_a_podman_that_does_not_start(words: str, code: str, name: str) -> None:
    found, message = causes.of_service(words)
    assert found == code
    assert message.startswith(f"{name} is missing" if name else ("Podman "))


def test_every_code_has_its_error_and_every_cause_its_signs() -> None:
    rows = (*causes._CONTAINER, *causes._REGISTRY, *causes._SERVICE)
    found = {code for code, _, _ in rows} | {"programs_missing", "ids_out_of_range"}
    assert found - set(CODES) == set(CAUSES)
    assert not [sign for _, _, signs in rows for sign in signs if sign != sign.lower()]


def test_long_words_keep_both_ends() -> None:
    words = "initializing " + "x" * 5000 + ": the reason"
    assert len(shortened(words)) <= 1000
    assert shortened(words).startswith("initializing ") and shortened(words).endswith(": the reason")
    assert shortened("  short\n") == "short"
