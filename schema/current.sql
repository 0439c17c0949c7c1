-- Generated from schema/migrations by schema/generate.py; do not edit.

CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    user_id INTEGER,
    user_name TEXT NOT NULL,
    via TEXT NOT NULL,
    address TEXT NOT NULL DEFAULT '',
    action TEXT NOT NULL,
    target TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL,
    request_id TEXT NOT NULL,
    detail_json TEXT NOT NULL DEFAULT '{}'
, hash TEXT NOT NULL DEFAULT '') STRICT;

CREATE TABLE audit_archived (
    -- the last row that was moved: the chain in the database begins behind it; one row or none
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id INTEGER NOT NULL,
    hash TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;

CREATE TABLE audit_concerns (
    -- an index, not evidence: the row of the audit itself has the owner's name and is in the chain
    audit_id INTEGER PRIMARY KEY REFERENCES audit (id) ON DELETE CASCADE,
    owner_id INTEGER NOT NULL          -- whose thing somebody else acted on
) STRICT;

CREATE TABLE audit_open (
    -- an action whose outcome has no row yet
    work INTEGER PRIMARY KEY,
    audit_id INTEGER NOT NULL REFERENCES audit (id)   -- its row `begun`
) STRICT;

CREATE TABLE context_files (
    -- one build context: `context` is the digest of its own listing, so clones and revisions share it
    context TEXT NOT NULL,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES files (sha256),
    executable INTEGER NOT NULL CHECK (executable IN (0, 1)),
    PRIMARY KEY (context, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE facts (
    -- what this installation knows of itself: trial_started_at, ...
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE files (
    -- contents of build contexts: each is there once, whoever uses it
    sha256 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

CREATE TABLE gpu_leases (
    -- taken with the start, gone with the confirmed stop; one exclusive holder, or several that share
    gpu TEXT NOT NULL,   -- NVML's uuid
    workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    mode TEXT NOT NULL CHECK (mode IN ('exclusive', 'shared')),
    taken_at TEXT NOT NULL,
    PRIMARY KEY (gpu, workspace_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE images (
    -- one user's image of one template, as last seen in that user's own store
    owner_id INTEGER NOT NULL REFERENCES users (id),
    image_ref TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('missing', 'pulling', 'building', 'ready', 'failed')),
    digest TEXT,
    size_bytes INTEGER,
    error TEXT,
    updated_at TEXT NOT NULL,
    PRIMARY KEY (owner_id, image_ref)
) STRICT, WITHOUT ROWID;

CREATE TABLE login_failures (
    -- one row for each subject (a user, an address) of each try that was not a success; soon removed
    subject TEXT NOT NULL,                -- keyed digest of what was tried: names nobody, holds no mistyped password
    at TEXT NOT NULL
) STRICT;

CREATE TABLE login_places (
    user_id INTEGER NOT NULL REFERENCES users (id),
    client TEXT NOT NULL,                 -- an address, or the network that counts as one client
    at TEXT NOT NULL,                     -- of the last login
    failures INTEGER NOT NULL DEFAULT 0,  -- in a row since then
    PRIMARY KEY (user_id, client)
) STRICT, WITHOUT ROWID;

CREATE TABLE operation_log (
    operation_id TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
    line INTEGER NOT NULL,
    at TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (operation_id, line)
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
    id TEXT PRIMARY KEY,
    owner_id INTEGER NOT NULL REFERENCES users (id),
    kind TEXT NOT NULL CHECK (kind IN ('pull', 'build', 'setup')),
    subject_type TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    phase TEXT NOT NULL DEFAULT '',
    progress_json TEXT NOT NULL DEFAULT '{}',
    error_json TEXT,
    request_json TEXT NOT NULL DEFAULT '{}',
    result_json TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
    request_id TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    finished_at TEXT
) STRICT;

CREATE TABLE ports (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    container_port INTEGER NOT NULL CHECK (container_port BETWEEN 1 AND 65535),
    host_port INTEGER NOT NULL UNIQUE CHECK (host_port BETWEEN 1 AND 65535),   -- on 127.0.0.1
    created_at TEXT NOT NULL, access TEXT NOT NULL DEFAULT 'owner' CHECK (access IN ('owner', 'host')),
    PRIMARY KEY (workspace_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE quotas (
    -- named policies; NULL is unlimited
    name TEXT PRIMARY KEY,
    max_workspaces INTEGER,
    max_running INTEGER,
    max_gpus INTEGER,
    max_cpu INTEGER,   -- thousandths of a core
    max_memory_bytes INTEGER,
    max_image_bytes INTEGER
) STRICT;

CREATE TABLE schema_migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    applied_at TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,                  -- names the row, opens nothing
    user_id INTEGER NOT NULL REFERENCES users (id),
    cookie_hash TEXT NOT NULL UNIQUE,     -- SHA-256 of the cookie's random value
    header_hash TEXT NOT NULL,            -- SHA-256 of the secret that the page sends as a header
    address TEXT NOT NULL,                -- where the login came from
    created_at TEXT NOT NULL,
    last_used_at TEXT NOT NULL            -- written once a minute at most
, browser TEXT NOT NULL DEFAULT '') STRICT;

CREATE TABLE template_revisions (
    template_id TEXT NOT NULL REFERENCES templates (id) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    source_type TEXT NOT NULL CHECK (source_type IN ('registry', 'dockerfile')),
    image_ref TEXT NOT NULL,
    spec_json TEXT NOT NULL,
    created_at TEXT NOT NULL, dockerfile TEXT, context TEXT, local_only INTEGER NOT NULL DEFAULT 0 CHECK (local_only IN (0, 1)), written_by INTEGER, sealed_json TEXT NOT NULL DEFAULT '{}', bundle_digest TEXT, images_json TEXT NOT NULL DEFAULT '[]', findings_json TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (template_id, revision)
) STRICT, WITHOUT ROWID;

CREATE TABLE templates (
    id TEXT PRIMARY KEY,
    owner_id INTEGER REFERENCES users (id),   -- NULL: global
    name TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('disabled', 'enabled')),
    revision INTEGER NOT NULL,
    managed INTEGER NOT NULL DEFAULT 0 CHECK (managed IN (0, 1)),
    cloned_from TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
, reviewed_revision INTEGER) STRICT;

CREATE TABLE tickets (
    secret_hash TEXT PRIMARY KEY,         -- SHA-256 of the ticket
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('session', 'pat', 'peer')),
    credential TEXT NOT NULL,             -- the id of the session or token that it was issued to
    purpose TEXT NOT NULL,                -- the endpoint that it opens
    subject TEXT NOT NULL,                -- SHA-256 of the path and the query that it opens
    expires_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    prefix TEXT NOT NULL,                 -- the secret's first characters, to tell tokens apart by
    secret_hash TEXT NOT NULL UNIQUE,     -- SHA-256 of the secret
    created_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    last_used_at TEXT,                    -- written once a minute at most
    last_used_from TEXT,                  -- the address of that use
    ended_at TEXT,                        -- revoked, or first seen expired: a clock set back revives nothing
    end_reason TEXT CHECK (end_reason IN ('revoked', 'expired'))
) STRICT;

CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    uid INTEGER UNIQUE,   -- NULL only until the Linux account exists
    display_name TEXT NOT NULL DEFAULT '',
    superuser INTEGER NOT NULL DEFAULT 0 CHECK (superuser IN (0, 1)),
    disabled INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1)),
    -- ready; incomplete: provisioning began and did not end; cleanup_required: it cannot go on by itself
    provisioning TEXT NOT NULL DEFAULT 'incomplete' CHECK (provisioning IN ('ready', 'incomplete', 'cleanup_required')),
    provisioning_note TEXT NOT NULL DEFAULT '',
    password_hash TEXT,
    password_length INTEGER,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL, password_closed INTEGER NOT NULL DEFAULT 0 CHECK (password_closed IN (0, 1)), failed_logins INTEGER NOT NULL DEFAULT 0, quota TEXT REFERENCES quotas (name),
    CHECK (uid IS NOT NULL OR provisioning <> 'ready')
) STRICT;

CREATE TABLE workspaces (
    id TEXT PRIMARY KEY,
    owner_id INTEGER NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    display_name TEXT NOT NULL DEFAULT '',
    template_id TEXT NOT NULL,
    template_revision INTEGER NOT NULL,
    image_ref TEXT NOT NULL,
    image_digest TEXT,
    container_id TEXT,
    status TEXT NOT NULL CHECK (status IN ('creating', 'stopped', 'starting', 'running', 'stopping', 'deleting', 'failed')),
    status_reason TEXT,
    status_since TEXT NOT NULL,
    health TEXT NOT NULL DEFAULT 'unknown',
    exit_code INTEGER,
    cpu_limit INTEGER,
    memory_bytes INTEGER,
    shm_bytes INTEGER,
    pids_limit INTEGER,
    gpu_count INTEGER NOT NULL DEFAULT 0,
    gpu_mode TEXT NOT NULL DEFAULT 'exclusive' CHECK (gpu_mode IN ('exclusive', 'shared')),
    env_json TEXT NOT NULL DEFAULT '{}',
    restart_on_boot INTEGER NOT NULL DEFAULT 0 CHECK (restart_on_boot IN (0, 1)),
    -- what the container was made from differs from what the row says: make it anew at the next start
    stale INTEGER NOT NULL DEFAULT 0 CHECK (stale IN (0, 1)),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    started_at TEXT,
    stopped_at TEXT, limits_missing_json TEXT NOT NULL DEFAULT '[]', idle_since TEXT, keep_until TEXT, work INTEGER, last_error_json TEXT,
    UNIQUE (owner_id, name)
) STRICT;

CREATE INDEX audit_concerns_owner ON audit_concerns (owner_id, audit_id);

CREATE INDEX audit_owner ON audit (user_id, id);

CREATE INDEX audit_request ON audit (request_id);

CREATE INDEX context_files_sha256 ON context_files (sha256);

CREATE INDEX gpu_leases_workspace ON gpu_leases (workspace_id);

CREATE INDEX login_failures_subject ON login_failures (subject, at);

CREATE INDEX operations_kind ON operations (owner_id, kind, created_at);

CREATE INDEX operations_open ON operations (status) WHERE status IN ('queued', 'running');

CREATE INDEX operations_subject ON operations (owner_id, subject_type, subject_id);

CREATE INDEX sessions_owner ON sessions (user_id);

CREATE INDEX template_revisions_context ON template_revisions (context) WHERE context IS NOT NULL;

CREATE UNIQUE INDEX templates_name ON templates (coalesce(owner_id, 0), name);

CREATE INDEX tickets_owner ON tickets (user_id);

CREATE INDEX tokens_owner ON tokens (user_id);

CREATE INDEX workspaces_active ON workspaces (status) WHERE status <> 'stopped';

CREATE INDEX workspaces_list ON workspaces (owner_id, created_at, id);

CREATE TRIGGER audit_keeps_its_rows BEFORE DELETE ON audit
WHEN OLD.id > coalesce((SELECT id FROM audit_archived), 0) BEGIN
    SELECT RAISE(ABORT, 'audit rows are only ever added');
END;

CREATE TRIGGER audit_keeps_its_values BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'audit rows are only ever added');
END;

CREATE TRIGGER gpu_leases_end AFTER UPDATE OF status ON workspaces WHEN NEW.status = 'stopped'
BEGIN
    DELETE FROM gpu_leases WHERE workspace_id = NEW.id;
END;

CREATE TRIGGER gpu_leases_exclude BEFORE INSERT ON gpu_leases
WHEN EXISTS (SELECT 1 FROM gpu_leases l WHERE l.gpu = NEW.gpu AND l.workspace_id <> NEW.workspace_id
    AND (l.mode = 'exclusive' OR NEW.mode = 'exclusive'))
BEGIN
    SELECT RAISE(ABORT, 'the GPU is leased');
END;

CREATE TRIGGER tickets_end_with_their_account AFTER UPDATE OF disabled ON users WHEN NEW.disabled BEGIN
    DELETE FROM tickets WHERE user_id = NEW.id;
END;

CREATE TRIGGER tickets_end_with_their_session AFTER DELETE ON sessions BEGIN
    DELETE FROM tickets WHERE kind = 'session' AND credential = OLD.id;
END;

CREATE TRIGGER tickets_end_with_their_token AFTER UPDATE OF ended_at ON tokens WHEN NEW.ended_at IS NOT NULL BEGIN
    DELETE FROM tickets WHERE kind = 'pat' AND credential = NEW.id;
END;
