"""Numbers and patterns that the app and the helper's programs have in common.

The table of verbs (protocol.py) and the agent hold calls to them; what the app alone needs is in svc.limits.
Imports nothing: the command line loads it. Patterns are for `fullmatch`.
"""

from __future__ import annotations

# --- commands and their output (specification, "Limits") -----------------------
EXEC_TIMEOUT_MAX_S = 600  # "`ws exec` maximum timeout"
EXEC_OUTPUT_MAX = 256 * 1024  # "`ws exec` output limit", both streams together
EXEC_ARGS_MAX = 256  # items of a template's command, and of one that a protocol message holds
EXEC_ARGS_BYTES_MAX = 48 * 1024  # so that it fits the 64 KiB of a message
# What the kernel takes, execve(2): one word without its NUL (MAX_ARG_STRLEN), and all words, each with its
# NUL and a pointer, together with the variables (a quarter of the usual limit of the stack).
EXEC_ARG_MAX = 128 * 1024 - 1
EXEC_COMMAND_BYTES_MAX = 2 * 1024 * 1024
EXEC_ARG_COST = 9
WATCH_MS_MAX = 5000  # that the start of a launcher waits for its exit
LOG_TAIL_MAX = 10**12  # lines that may be asked for: any number
LOG_BYTES_MAX = 1024 * 1024  # bytes of one JSON answer, the newest kept; the raw output is not limited
LOG_MARKERS_MAX, LOG_MARKER_MAX = 32, 120  # of one answer, the newest kept; bytes of each

# --- names ---------------------------------------------------------------------
SLUG = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"  # names of workspaces, templates and launchers
# Of Linux accounts, as directory services have them: first.last@example.org. Digits alone would be a uid.
USER_NAME = r"(?![0-9]+(?![A-Za-z0-9._@-]))[A-Za-z0-9_][A-Za-z0-9._@-]{0,255}"
USER_NAME_MAX = 256  # bytes
NEW_USER_NAME = r"[a-z_][a-z0-9_-]{0,31}"  # of one that useradd makes: its own rule
ENV_NAME = r"[A-Za-z_][A-Za-z0-9_.-]{0,127}"  # not only of shells: discovery.type, spring.main.banner-mode
ARGUMENT_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"  # an ARG of a Dockerfile
ENV_VALUE_MAX = 4096
BUILD_ARGS_MAX = 64  # of one build
BUILD_SECRETS_MAX = 16  # of one build
BUILD_SECRETS_BYTES_MAX = 256 * 1024  # of all together
BUILD_SECRET_ID = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"  # noqa: S105  the form of a name
BUILD_ARGS_BYTES_MAX = 16 * 1024  # of all together; they are on the command line of Podman
ENV_COUNT_MAX = 64
IMAGE_REF_MAX = 255
# host[:port]/path[:tag][@sha256:digest]; never a transport ("dir:/"), never an option.
IMAGE_REF = (
    r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)+"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
REGISTRY_HOST = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?"
REGISTRY_PATH = r"(?:[a-z0-9._-]+(?:/[a-z0-9._-]+)*/?)?"

# --- resources and parts of a workspace -------------------------------------------
CPU_MAX = 1024  # cores
MEMORY_MIN = 4 * 1024**2
SHM_MIN = 64 * 1024
SIZE_MAX = 2**50  # of memory, and of a file
PIDS_MAX = 4_000_000
GPUS_MAX = 64
RUN_AS_MAX = 65535  # ids inside a container
MOUNTS_MAX = 8  # of one template
NETWORK_PROGRAMS = ("netavark", "aardvark-dns")  # that Podman needs for a network of containers
PODMAN_PROGRAM_DIRECTORIES = (
    "/usr/local/libexec/podman", "/usr/local/lib/podman", "/usr/libexec/podman", "/usr/lib/podman",
)  # fmt: skip
ACCESS_OWNER, ACCESS_HOST = "owner", "host"  # who may connect to a port: its owner, or every user of the host
CONNECT_S = 30  # for a program inside to accept, with a full queue too
PLACEHOLDER = "{token}"  # where a launcher's login token is in the pattern that finds it
LAUNCHERS_WATCHED_MAX = 64  # at the start of their workspace
TOKEN_PATTERN_MAX = 200  # characters

TERMINALS_MAX = 8  # of one workspace
TERMINAL_ID = r"t-[0-9a-z]{6}"
TERMINAL_SIDE_MAX = 1000  # columns, rows
TERMINAL_IDLE_S = 24 * 3600  # without a viewer, input and output: then it is closed

# --- files and images ----------------------------------------------------------------
FILE_PATH_MAX, FILE_NAME_MAX = 4095, 255  # bytes below a file root, as the kernel takes them
FILES_LISTED_MAX = 10_000  # entries of one answer
DOCKERFILE_IMAGES_MAX = 100  # from registries, copied from or begun with; each is looked up in the policy
IMAGES_AT_ONCE = 200  # ids in one call

# --- calls ----------------------------------------------------------------------------
CALLS_PER_USER_MAX = 16  # at once, of one app process
AGENT_CALLS_MAX = 3 * CALLS_PER_USER_MAX  # at once in one agent: what the app's three processes may ask
ACCOUNT_CHECK_S = 5.0  # "an answer older than 5 s is asked again"
PREFLIGHT_S = 120  # to ask registries for manifests
DISK_USAGE_S = 600  # to count the files of one user
