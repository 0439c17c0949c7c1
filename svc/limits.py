"""Every number that someone may meet, named once, with its reason.

Those that the helper's programs have too are defined in svc_helper.wire.limits.

Sizes are bytes, times seconds, unless the name says otherwise.
"""

from __future__ import annotations

from svc_helper.wire.limits import (  # noqa: F401  for the modules of svc, from one place
    CALLS_PER_USER_MAX,
    DOCKERFILE_IMAGES_MAX,
    ENV_COUNT_MAX,
    ENV_NAME,
    ENV_VALUE_MAX,
    EXEC_ARGS_BYTES_MAX,
    EXEC_ARGS_MAX,
    EXEC_OUTPUT_MAX,
    EXEC_TIMEOUT_MAX_S,
    FILE_NAME_MAX,
    FILE_PATH_MAX,
    FILES_LISTED_MAX,
    IMAGE_REF,
    IMAGE_REF_MAX,
    IMAGES_AT_ONCE,
    LOG_BYTES_MAX,
    LOG_TAIL_MAX,
    MOUNTS_MAX,
    PREFLIGHT_S,
    REGISTRY_HOST,
    REGISTRY_PATH,
    SLUG,
    USER_NAME,
)

# --- workspaces (specification, "Limits") --------------------------------------
EXEC_TIMEOUT_DEFAULT_S = 300  # "`ws exec` default timeout"
STOP_GRACE_S = 10  # between TERM and KILL, as `podman stop`

STATS_SAMPLE_MS = 250  # over which a snapshot measures the processors
PROCESSES_SHOWN = 50  # of a workspace, in one snapshot
PORTS_PER_WORKSPACE = 32
IDLE_MINUTES_MIN, IDLE_MINUTES_MAX = 10, 7 * 24 * 60  # of a template's idle policy
IDLE_EXTEND_HOURS_MAX = 72  # an owner's word, from now on
IDLE_CPU_PERCENT = 2.0  # of one core: below it nothing happens
IDLE_GPU_PERCENT = 2
GPU_USE_CASES = ("none", "light", "standard", "heavy", "max")  # the levels of `ws recommend`

# --- names ---------------------------------------------------------------------
DISPLAY_NAME_MAX = 128
ENV_BYTES_MAX = 32 * 1024  # names and values together must fit a protocol message

# --- template bundles ------------------------------------------------------------
BUNDLE_MAX = 64 * 1024 * 1024  # a whole archive: sources to build from, not data; the database keeps them
BUNDLE_MEMBER_MAX = 32 * 1024 * 1024  # one file of a build context
BUNDLE_MEMBERS_MAX = 4096  # files and directories of one archive
BUNDLE_MANIFEST_MAX = 2 * 1024 * 1024  # read into memory; so many members with long names are 1.5 MB
BUNDLE_DOCKERFILE_MAX = 128 * 1024  # edited as one text, which in JSON, all escaped, must fit BODY_MAX
BUNDLE_PATH_MAX = 255  # bytes of a member's path: what a plain tar header holds
BUNDLE_COMPONENT_MAX = 100  # bytes of a name in it: what a plain tar header holds
DISK_RESERVE = 128 * 1024 * 1024  # of the database's disk, which no archive on its way takes

# --- templates ---------------------------------------------------------------------
TEMPLATES_PER_USER = 200
CONTEXT_BYTES_PER_USER = 256 * 1024 * 1024  # of all build contexts of one user's templates
DOCUMENT_MAX = 64 * 1024  # of a template besides its Dockerfile, as JSON: a list may have 200 of them
REVISION_BYTES_PER_USER = (
    64 * 1024 * 1024
)  # of all revisions of one user's templates, their Dockerfiles included
REVISIONS_KEPT = 20  # besides those that workspaces have
FINDINGS_MAX = 64
DIFF_LINES_MAX = 400  # of a finding that shows what changed
LAUNCHERS_MAX, PORTS_MAX = 16, 32  # of one template

# --- files -------------------------------------------------------------------------
FILE_READ_MAX = 1024 * 1024  # of one JSON answer of `read`; a download has no such limit
FILES_LISTED_DEFAULT = 1000  # entries of one answer
UPLOAD_MAX = 2**50  # SVC_UPLOAD_MAX at most
ARCHIVE_MEMBERS_MAX = 1_000_000  # files and directories of one archive
ARCHIVE_BYTES_MAX = 256 * 1024**3  # of their contents together, holes included
FILE_RATE_MIN = 64 * 1024  # bytes in FILE_RATE_S; a transfer that is slower for so long is ended
FILE_RATE_S = 60
FILE_FACTS_S = 30  # for an agent's first word of a file, and its last
ARCHIVE_WALK_S = 120  # for it to count what is below a directory
FILE_COMMIT_S = 120  # for a whole file to be on the disk for certain
FILE_PIPE = 1024 * 1024  # of a listener's own, between two sockets: 64 KiB takes much longer

# --- images ------------------------------------------------------------------------
OPERATIONS_OPEN_PER_USER = 250  # queued or running; as many as one's templates, and some more

# --- Dockerfiles ---------------------------------------------------------------
DOCKERFILE_LINE_MAX = 64 * 1024 - 1  # buildah reads no longer one
DOCKERFILE_INSTRUCTIONS_MAX = 2000  # far more layers than storage takes
DOCKERFILE_STAGES_MAX = 100  # each names an image, which is looked up in the policy
REFUSALS_MAX = 20  # of one Dockerfile, in one answer

# --- HTTP ----------------------------------------------------------------------
BODY_MAX = 1024 * 1024  # a JSON body; uploads have their own limit
ANSWER_MAX = 16 * 1024 * 1024  # what a client command reads (a log of LOG_BYTES_MAX, all escaped, is 6 MiB)
ANSWER_WAIT_S = 150  # a client's patience: longer than any deadline of the service below but exec's own
JSON_DEPTH_MAX = 32
LIST_LIMIT_DEFAULT = 50
LIST_LIMIT_MAX = 200
LONG_CALLS_PER_USER = 8  # exec, transfer, archive, stream, terminal, follow
LONG_CALLS_PER_ADDRESS = 12  # of THREADS_PER_CLIENT, where several users come from one address
LONG_CALLS_TOTAL = 48  # of 64 threads, so that `ws list` always finds one
PORT_DEFAULT = 24680  # "Default server port"

# --- passwords (specification, "Authentication" 5) -------------------------------
PASSWORD_MIN = 8
PASSWORD_MIN_SUPERUSER = 12
PASSWORD_MAX = 64
PASSWORD_GUESSES_MIN = 10**6  # by zxcvbn's estimate; five years of LOGIN_FAILURES_MAX in LOGIN_WINDOW_S

# --- logins and sessions ---------------------------------------------------------
LOGIN_FAILURES_MAX = 5  # in LOGIN_WINDOW_S, for a user and for an address; more are not even hashed
LOGIN_WINDOW_S = 15 * 60
LOGIN_FAILURES_IN_A_ROW = 100  # then no password opens the account until the host or an administrator does
HASHES_QUEUED_MAX = 16  # logins that wait for one of the few hashes at a time; more are 429
SESSION_IDLE_S = 12 * 3600
SESSION_MAX_S = 7 * 24 * 3600
SESSION_IDLE_SUPERUSER_S = 2 * 3600
SESSION_MAX_SUPERUSER_S = 24 * 3600
SESSIONS_PER_USER = 20  # the oldest goes
USE_NOTED_S = 60  # a last use is written this often at most
CLOCK_AHEAD_S = 60  # a session or token from further in the future opens nothing: the clock was set back

# --- tokens ("lifetime in days (1 to 365, default 90)") --------------------------
TOKEN_DAYS_DEFAULT = 90
TOKEN_DAYS_MAX = 365
TOKEN_EXPIRES_SOON_DAYS = 7  # "Flagged ... when it expires within seven days"
TOKEN_NAME_MAX = 64
TOKENS_PER_USER = 50
TOKEN_FAILURES_MAX = 30  # wrong tokens in a minute from one address; then 429

# --- calls to the helper: deadlines -----------------------------------------------
CALL_LAUNCHER_S = 60
CALL_STOP_S = STOP_GRACE_S + 35
CALLS_OUTSTANDING_MAX = 56  # of one app process: of a listener's 64 threads some never wait for an agent

# --- processes ---------------------------------------------------------------------
WEB_THREADS = 64
THREADS_PER_CLIENT = 16  # of those, for one uid on the host socket or one address on the TLS listener
CONNECTIONS_PER_CLIENT = 128  # more are closed unanswered
READING_S = 10  # for a request's head, and for each part of its body, however slowly it comes
TRANSFER_S = 900  # for a whole file that is sent or received, however slowly
SENDING_S = 20  # for each part of an answer that its client reads slowly
STOP_GRACEFUL_S = 3  # requests in flight at a stop
STOP_TOTAL_S = 5  # "everything of svc gone within 5"
TRANSITION_DEADLINE_S = 120  # no workspace state without an exit
