"""The limits of svc: each number once, with its reason.

Those that the helper's programs have too are in svc_helper.wire.limits.

Sizes are bytes, times seconds, unless the name says otherwise.
"""

from __future__ import annotations

# --- ports ----------------------------------------------------------------------
PORT_KINDS = ("http", "https", "tcp", "ssh", "postgres")
PORT_USERS = {"ssh": "root", "postgres": "postgres"}  # kinds with a login, and the usual one

# --- workspaces (specification, "Limits") --------------------------------------
DELETE_AFTER_S = 10 * 60  # of a stopped workspace with delete_when_stopped, for its client to be first
EXEC_TIMEOUT_DEFAULT_S = 300  # "`ws exec` default timeout"
STOP_GRACE_S = 10  # between TERM and KILL, as `podman stop`

# CPU usage of a snapshot is that of so long, at least: the period in which the kernel applies a limit of
# CPUs, so that a limited workspace is neither seen at rest nor at work alone.
STATS_SAMPLE_MS = 100
PROCESSES_MAX = 50  # processes of a workspace in one snapshot
PORTS_PER_WORKSPACE = 32
PORTS_SHARE = 4  # a user has the fourth part of SVC_PORT_RANGE, or one workspace's if the half has as many
IDLE_MINUTES_MIN, IDLE_MINUTES_MAX = 10, 7 * 24 * 60  # of a template's idle policy
IDLE_EXTEND_HOURS_MAX = 72  # from the time of the owner's request
IDLE_CPU_PERCENT = 2.0  # of one core: below it a workspace counts as idle
IDLE_GPU_PERCENT = 2
GPU_USE_CASES = ("none", "light", "standard", "heavy", "max")  # the levels of `ws recommend`

# --- licence (specification, "Limits") ------------------------------------------
TRIAL_DAYS = 90  # "Built-in trial", from the first `svc admin migrate`
LICENSE_NOTICE_DAYS = 14  # before the end of the trial or of a licence administrators are told

# --- names ---------------------------------------------------------------------
USER_ID = r"[0-9]{1,10}"  # a uid
DISPLAY_NAME_MAX = 128
ENV_BYTES_MAX = 32 * 1024  # names and values together must fit a protocol message

# --- template bundles ------------------------------------------------------------
BUNDLE_MAX = 64 * 1024 * 1024  # one archive; it is for build sources, not data, since the database stores it
BUNDLE_MEMBER_MAX = 32 * 1024 * 1024  # one file of a build context
BUNDLE_MEMBERS_MAX = 4096  # files and directories of one archive
BUNDLE_MANIFEST_MAX = (
    2 * 1024 * 1024
)  # read into memory; BUNDLE_MEMBERS_MAX entries with long names take 1.5 MB
BUNDLE_DOCKERFILE_MAX = 128 * 1024  # as JSON with every character escaped it must fit DOCUMENT_BODY_MAX
BUNDLE_PATH_MAX = 255  # bytes of a member's path: the maximum of a plain tar header
BUNDLE_COMPONENT_MAX = 100  # bytes of one path component: the maximum of a plain tar header
DISK_RESERVE = 128 * 1024 * 1024  # bytes of the database's disk that uploads leave free

# --- templates ---------------------------------------------------------------------
TEMPLATES_PER_USER = 200
CONTEXT_BYTES_PER_USER = 256 * 1024 * 1024  # total size of the build contexts of one user's templates
DOCUMENT_MAX = 64 * 1024  # of a template without its Dockerfile, as JSON; a list may have 200 of them
# Total size of all revisions of one user's templates, including their Dockerfiles.
REVISION_BYTES_PER_USER = 64 * 1024 * 1024
REVISION_MAX = 2**31 - 1
REVISIONS_KEPT = 20  # of a template, besides those that workspaces use
FINDINGS_MAX = 64
DIFF_LINES_MAX = 400  # of the diff in one finding
LAUNCHERS_MAX, PORTS_MAX = 16, 32  # of one template

# --- files -------------------------------------------------------------------------
FILE_READ_MAX = 1024 * 1024  # of one JSON reply of `read`; downloads are not limited
FILES_LISTED_DEFAULT = 1000  # entries of one reply
UPLOAD_MAX = 2**50  # upper bound of SVC_UPLOAD_MAX
ARCHIVE_MEMBERS_MAX = 1_000_000  # files and directories of one archive
ARCHIVE_BYTES_MAX = 256 * 1024**3  # total size of their contents, including holes
FILE_RATE_MIN = 64 * 1024  # bytes in FILE_RATE_S; a slower transfer is ended
FILE_RATE_S = 60
FILE_FACTS_S = 30  # for an agent's first message about a file, and for its last
ARCHIVE_WALK_S = 120  # for an agent to count the entries of a directory tree
FILE_COMMIT_S = 120  # for an agent to sync a whole file to disk
FILE_PIPE = 1024 * 1024  # bytes in a pipe that a file goes through, or on the last way to a client
FILE_SOCKET = 4 * FILE_PIPE  # in a socket between processes of svc, as far as the kernel grants it

# --- images ------------------------------------------------------------------------
OPERATIONS_OPEN_PER_USER = 250  # queued or running; more than TEMPLATES_PER_USER

# --- Dockerfiles ---------------------------------------------------------------
DOCKERFILE_LINE_MAX = 64 * 1024 - 1  # the longest line that buildah reads
DOCKERFILE_INSTRUCTIONS_MAX = 2000  # more layers than the storage driver supports
DOCKERFILE_STAGES_MAX = 100  # the image of each is checked against the registry policy
REFUSALS_MAX = 20  # of one Dockerfile, in one reply

# --- HTTP ----------------------------------------------------------------------
BODY_MAX = 64 * 1024  # of a JSON body whose schema has no limit of its own; uploads have their own limits
CREDENTIALS_BODY_MAX = (
    4 * 1024
)  # of a login, which a stranger sends: two passwords with every character escaped
DOCUMENT_BODY_MAX = 1024 * 1024  # with variables, commands, secrets of a build or a Dockerfile
BODY_VALUES_LEAST = 2048  # values of a body that are judged one by one, so that each fault has its answer
EXEC_BODY_MAX = (
    5 * 1024 * 1024
)  # of `ws exec`: EXEC_COMMAND_BYTES_MAX as JSON, with every second byte escaped
ANSWER_MAX = 16 * 1024 * 1024  # that a client command reads; an escaped log of LOG_BYTES_MAX has 6 MiB
COPY_LEAST_S, COPY_MOST_S = 300, 7200  # for the copy of an image: with its size, up to the verb's limit
COPY_BYTES_PER_S = 4 * 1024 * 1024  # of a slow and busy disk
COPY_QUESTION_S = 120  # for an agent to say what a copy takes; its Podman may be making another one
ANSWER_WAIT_S = 150  # timeout of a client command: longer than the service's own except that of exec
JSON_DEPTH_MAX = 32
LIST_LIMIT_DEFAULT = 50
LIST_LIMIT_MAX = 200
LONG_CALLS_PER_USER = 8  # exec, transfers, archives
LONG_CALLS_PER_ADDRESS = 12  # of THREADS_PER_CLIENT, for several users behind one address
ACCESS_RECHECK_S = 15.0  # of a stream or transfer: the whole rule, for a Linux account that has expired
ACCESS_ENDED_S = 0.5  # of the same: whether the session or token has ended, or the account is disabled
LONG_CALLS_TOTAL = 48  # of WEB_THREADS, so that short requests always find a free one
STREAMS_PER_USER = 64  # events, monitors, followed logs, terminals: each open page has a few; no thread
STREAMS_PER_ADDRESS = 128  # for several users behind one address
STREAMS_TOTAL = 512  # of a listener; besides CONNECTIONS_MAX
STREAM_OUTPUT_MAX = 256 * 1024  # bytes that a client has not read yet; then it loses the connection
STREAM_STALL_S = 20  # for a client to read anything of what waits for it
STREAM_STOP_S = 2.0  # on shutdown, for the last bytes of every stream
MONITOR_PERIOD_S = 2.0  # between two samples of a live monitor
HEARTBEAT_S = 15.0  # of silence on a stream, before a sign of life
PORT_DEFAULT = 24680  # "Default server port"
APPS_PORT_DEFAULT = 24681  # of apps in the browser, on loopback

# --- passwords (specification, "Authentication" 5) -------------------------------
PASSWORD_MIN = 8
PASSWORD_MIN_SUPERUSER = 12
PASSWORD_MAX = 64
PASSWORD_GUESSES_MIN = 10**6  # by zxcvbn's estimate; five years of LOGIN_FAILURES_MAX in LOGIN_WINDOW_S

# --- logins and sessions ---------------------------------------------------------
LOGIN_FAILURES_MAX = 5  # in LOGIN_WINDOW_S, of a user, an address, a password change; more are not hashed
LOGIN_WINDOW_S = 15 * 60
NEW_PASSWORDS_MAX = 20  # of one user in LOGIN_WINDOW_S: to judge one takes up to 0.3 s
LOGIN_PLACES_PER_USER = 20  # clients that a user has logged in from: failures of others do not count there
LOGIN_PLACE_S = 90 * 24 * 3600
LOGIN_PLACE_FAILURES = 20  # in a row; then it is like any other
LOGIN_FAILURES_IN_A_ROW = 100  # then the login is locked until a call on the host or a new password
HASHES_QUEUED_MAX = 16  # logins that wait for a hash; more get 429
HASHES_PER_NAME = 2  # of one user name, those in work too: others' logins wait for so many of anybody's
SESSION_IDLE_S = 12 * 3600
SESSION_MAX_S = 7 * 24 * 3600
SESSION_IDLE_SUPERUSER_S = 2 * 3600
SESSION_MAX_SUPERUSER_S = 24 * 3600
SESSIONS_PER_USER = 20  # a new one ends the oldest
APP_SESSIONS_PER_USER = 64  # browsers that are signed in to apps; likewise
TICKET_S = 30  # of a one-time ticket: a page follows its link at once
APP_LINK_S = 300  # of a link that a person reads in a terminal and opens in a browser
TICKET_LONGEST_S = max(TICKET_S, APP_LINK_S)
TICKETS_PER_USER = 64  # issued and not used yet
USE_NOTED_S = 60  # minimum time between two writes of a last use
CLOCK_AHEAD_S = 60  # a session or token created further in the future is refused: the clock was set back

# --- tokens ("lifetime in days (1 to 365, default 90)") --------------------------
TOKEN_DAYS_DEFAULT = 90
TOKEN_DAYS_MAX = 365
TOKEN_EXPIRES_SOON_DAYS = 7  # "Flagged ... when it expires within seven days"
EVENT_DAYS_KEPT = 30  # "30 days kept"
ENDED_DAYS_KEPT = 90  # of operations and tokens after their end; the audit keeps what was done
TOKEN_NAME_MAX = 64
TOKENS_PER_USER = 50
TOKEN_FAILURES_MAX = 30  # wrong tokens in a minute from one address; more get 429

# --- apps in the browser -----------------------------------------------------------
APP_CALLS_PER_WORKSPACE = 6  # connections that begin at once: as many as a page opens
APP_CALLS = 24  # of CALLS_OUTSTANDING_MAX: the API has the rest
APP_QUESTIONS_PER_WORKSPACE = 128  # that wait

# --- calls to the helper: timeouts -----------------------------------------------
CALL_LAUNCHER_S = 60
CALL_STOP_S = STOP_GRACE_S + 35
CALLS_OUTSTANDING_MAX = 56  # of one app process; the remaining WEB_THREADS never wait for an agent

# --- processes ---------------------------------------------------------------------
WEB_THREADS = 64
THREADS_PER_CLIENT = 16  # of WEB_THREADS; clients: svc/domain/addresses.py, svc/clients.py
THREADS_RESERVED = 8  # of WEB_THREADS, for clients that have next to none
BODIES_PER_CLIENT = 12  # of THREADS_PER_CLIENT, for requests whose bodies are read by a thread
SMALL_BODY_MAX = 16 * 1024  # of a body that is awaited without a thread, as heads are
BODY_GRACE_S = 1.0  # for a small body, before a thread answers what can be answered without it
PIPED_START_S = 3.0  # for the first message of an exec with a standard input, which holds a thread
BODIES_AWAITED_MAX = (
    32  # threads that wait for a body's next part; one more and the longest waiting is cut off
)
CONNECTIONS_MAX = 2048  # of a listener; for one more the client with the most loses its longest idle one
HEAD_MAX = 64 * 1024  # of a request's head
IDLE_S = 5  # for the first byte of a request
READING_S = 10  # to read a request's head, and each part of its body
TRANSFER_S = 900  # to send or receive a whole file at any rate
SENDING_S = 20  # to send each part of a reply to a slow client
STOP_GRACEFUL_S = 3  # for requests in progress at shutdown
STOP_TOTAL_S = 5  # "everything of svc gone within 5"
TRANSITION_DEADLINE_S = 120  # no workspace state without an exit
