-- Generated from schema/migrations by schema/generate.py; do not edit.

CREATE TABLE app_sessions (
    id TEXT PRIMARY KEY,                  -- names the row, opens nothing
    cookie_hash TEXT NOT NULL UNIQUE,     -- SHA-256 of the cookie
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('session', 'peer')),   -- of the ticket that it came from
    credential TEXT NOT NULL,             -- the id of that session; '' for a link made on the host
    workspace_id TEXT NOT NULL,
    port TEXT NOT NULL,
    origin TEXT NOT NULL,                 -- the app's address, as the browser has it
    address TEXT NOT NULL,                -- where the browser was
    created_at TEXT NOT NULL,
    last_used_at TEXT NOT NULL,           -- written once a minute at most
    FOREIGN KEY (workspace_id, port) REFERENCES ports (workspace_id, name) ON DELETE CASCADE
) STRICT;

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

CREATE TABLE audit_days (
    -- rows of one day that follow each other; a day whose clock was set back has more than one run
    first_id INTEGER PRIMARY KEY,  -- of the run's rows; the last one's comes before the next run's
    day TEXT NOT NULL
) STRICT;

CREATE TABLE audit_open (
    -- an action whose outcome has no row yet
    work INTEGER PRIMARY KEY,
    audit_id INTEGER NOT NULL REFERENCES audit (id)   -- its row `begun`
) STRICT;

CREATE TABLE audit_totals (
    user_name TEXT PRIMARY KEY,
    total INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE build_secrets (
    operation_id TEXT PRIMARY KEY,  -- the build, which is queued after its secrets are there
    owner_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE context_files (
    -- one build context: `context` is the digest of its own listing, so clones and revisions share it
    context TEXT NOT NULL,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES files (sha256),
    executable INTEGER NOT NULL CHECK (executable IN (0, 1)),
    PRIMARY KEY (context, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE disk_usage (
    user_id INTEGER PRIMARY KEY REFERENCES users (id),
    requested_at TEXT,   -- while a measurement is waited for
    measured_at TEXT,
    figures_json TEXT,   -- of that measurement
    error TEXT           -- why the last attempt failed
) STRICT;

CREATE TABLE events (
    -- what has changed, in the order of the commits: triggers write a row in the transaction of the change
    id INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used again: clients go on after it
    at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    type TEXT NOT NULL,
    owner_id INTEGER,                       -- whose thing it is; NULL: nobody's
    audience TEXT NOT NULL DEFAULT 'owner' CHECK (audience IN ('owner', 'everyone', 'administrators')),
    actor TEXT NOT NULL DEFAULT '',         -- named by the process, before the commit
    via TEXT NOT NULL DEFAULT '',
    subject_type TEXT NOT NULL,
    subject_id TEXT NOT NULL DEFAULT '',
    subject_name TEXT NOT NULL DEFAULT '',
    reason TEXT,
    data_json TEXT NOT NULL DEFAULT '{}'    -- put together as text: SQLite's json_object is not for triggers here
) STRICT;

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
    updated_at TEXT NOT NULL, user_json TEXT,
    PRIMARY KEY (owner_id, image_ref)
) STRICT, WITHOUT ROWID;

CREATE TABLE last_account_id (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id INTEGER NOT NULL
) STRICT;

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
    created_at TEXT NOT NULL, access TEXT NOT NULL DEFAULT 'owner' CHECK (access IN ('owner', 'host')), kind TEXT NOT NULL DEFAULT 'http'
    CHECK (kind IN ('http', 'https', 'tcp', 'ssh', 'postgres')), user TEXT, follows INTEGER NOT NULL DEFAULT 0 CHECK (follows IN (0, 1)),
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
, scopes TEXT NOT NULL DEFAULT '' CHECK (scopes IN ('', 'files')), apps TEXT NOT NULL DEFAULT '') STRICT;

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
    updated_at TEXT NOT NULL, password_closed INTEGER NOT NULL DEFAULT 0 CHECK (password_closed IN (0, 1)), failed_logins INTEGER NOT NULL DEFAULT 0, quota TEXT REFERENCES quotas (name), image_bytes INTEGER,
    CHECK (uid IS NOT NULL OR provisioning <> 'ready')
) STRICT;

CREATE TABLE workspace_totals (
    owner_id INTEGER PRIMARY KEY,
    total INTEGER NOT NULL
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
    stopped_at TEXT, limits_missing_json TEXT NOT NULL DEFAULT '[]', idle_since TEXT, keep_until TEXT, work INTEGER, last_error_json TEXT, network TEXT, command_json TEXT, delete_when_stopped INTEGER NOT NULL DEFAULT 0
    CHECK (delete_when_stopped IN (0, 1)),
    UNIQUE (owner_id, name)
) STRICT;

CREATE INDEX app_sessions_port ON app_sessions (workspace_id, port);

CREATE INDEX app_sessions_user ON app_sessions (user_id);

CREATE INDEX audit_action ON audit (action)
WHERE action NOT IN ('workspace.start', 'workspace.stop', 'workspace.exec', 'fs.roots', 'fs.list', 'fs.read',
    'fs.download', 'fs.upload');

CREATE INDEX audit_concerns_owner ON audit_concerns (owner_id, audit_id);

CREATE INDEX audit_outcome ON audit (outcome) WHERE outcome NOT IN ('begun', 'ok');

CREATE INDEX audit_owner ON audit (user_id);

CREATE INDEX audit_request ON audit (substr(request_id, 5, 8));

CREATE INDEX audit_user ON audit (user_name);

CREATE INDEX context_files_sha256 ON context_files (sha256);

CREATE INDEX events_owner ON events (owner_id, id);

CREATE INDEX events_shared ON events (id) WHERE audience <> 'owner';

CREATE INDEX events_subject ON events (subject_id, type, at)
WHERE type = 'capacity.changed' OR type = 'registries.changed' OR type = 'operation.progress'
    OR type = 'launcher.status_changed' OR type = 'token.expiring';

CREATE INDEX gpu_leases_workspace ON gpu_leases (workspace_id);

CREATE INDEX login_failures_subject ON login_failures (subject, at);

CREATE INDEX operations_kind ON operations (owner_id, kind, created_at);

CREATE INDEX operations_open ON operations (status) WHERE status IN ('queued', 'running');

CREATE INDEX operations_subject ON operations (owner_id, subject_type, subject_id);

CREATE INDEX sessions_owner ON sessions (user_id);

CREATE INDEX template_revisions_context ON template_revisions (context) WHERE context IS NOT NULL;

CREATE UNIQUE INDEX templates_name ON templates (coalesce(owner_id, 0), name);

CREATE INDEX templates_owner ON templates (owner_id);

CREATE INDEX tickets_owner ON tickets (user_id);

CREATE INDEX tokens_owner ON tokens (user_id);

CREATE INDEX workspaces_active ON workspaces (status) WHERE status <> 'stopped';

CREATE INDEX workspaces_deleted_when_stopped ON workspaces (status_since) WHERE delete_when_stopped = 1;

CREATE INDEX workspaces_health ON workspaces (health) WHERE health <> 'unknown';

CREATE INDEX workspaces_idle ON workspaces (idle_since) WHERE idle_since IS NOT NULL;

CREATE INDEX workspaces_list ON workspaces (owner_id, created_at, id);

CREATE INDEX workspaces_rebooted ON workspaces (status_since) WHERE status_reason = 'host_reboot';

CREATE INDEX workspaces_template ON workspaces (template_id, template_revision);

CREATE TRIGGER app_sessions_end_with_their_account AFTER UPDATE OF disabled ON users WHEN NEW.disabled BEGIN
    DELETE FROM app_sessions WHERE user_id = NEW.id;
END;

CREATE TRIGGER app_sessions_end_with_their_session AFTER DELETE ON sessions BEGIN
    DELETE FROM app_sessions WHERE kind = 'session' AND credential = OLD.id;
END;

CREATE TRIGGER audit_begins_a_day AFTER INSERT ON audit
WHEN substr(NEW.at, 1, 10) IS NOT (SELECT substr(at, 1, 10) FROM audit WHERE id = NEW.id - 1) BEGIN
    INSERT OR REPLACE INTO audit_days (first_id, day) VALUES (NEW.id, substr(NEW.at, 1, 10));
END;

CREATE TRIGGER audit_keeps_its_rows BEFORE DELETE ON audit
WHEN OLD.id > coalesce((SELECT id FROM audit_archived), 0) BEGIN
    SELECT RAISE(ABORT, 'audit rows are only ever added');
END;

CREATE TRIGGER audit_keeps_its_values BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'audit rows are only ever added');
END;

CREATE TRIGGER audit_totals_grow AFTER INSERT ON audit BEGIN
    INSERT INTO audit_totals (user_name, total) VALUES (NEW.user_name, 1)
    ON CONFLICT (user_name) DO UPDATE SET total = total + 1;
END;

CREATE TRIGGER audit_totals_shrink AFTER DELETE ON audit BEGIN
    UPDATE audit_totals SET total = total - 1 WHERE user_name = OLD.user_name;
    DELETE FROM audit_totals WHERE user_name = OLD.user_name AND total = 0;
END;

CREATE TRIGGER events_capacity_health AFTER UPDATE OF health ON workspaces
WHEN (OLD.health = 'gpu_lost') <> (NEW.health = 'gpu_lost') BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_leased AFTER INSERT ON gpu_leases BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_quota_added AFTER INSERT ON quotas BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_quota_changed AFTER UPDATE ON quotas BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_quota_of_user AFTER UPDATE OF quota ON users WHEN OLD.quota IS NOT NEW.quota BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_quota_removed AFTER DELETE ON quotas BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_released AFTER DELETE ON gpu_leases BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_running AFTER UPDATE OF status ON workspaces
WHEN (OLD.status IN ('stopped', 'failed', 'creating')) <> (NEW.status IN ('stopped', 'failed', 'creating')) BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_gpu_health AFTER UPDATE OF health ON workspaces
WHEN OLD.health <> NEW.health AND (NEW.health = 'gpu_lost' OR (OLD.health = 'gpu_lost' AND NEW.health = 'ok'))
BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES (iif(NEW.health = 'gpu_lost', 'gpu.lost', 'gpu.restored'), NEW.owner_id, 'workspace', NEW.id, NEW.name,
        '{"gpus":[' || coalesce((SELECT group_concat('"' || gpu || '"') FROM gpu_leases WHERE workspace_id = NEW.id), '')
            || ']}');
END;

CREATE TRIGGER events_image_added AFTER INSERT ON images WHEN NEW.status <> 'missing' BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES ('image.status_changed', NEW.owner_id, 'image', NEW.image_ref, NEW.image_ref,
        '{"from":"missing","to":"' || NEW.status || '","digest":' || coalesce('"' || NEW.digest || '"', 'null') || '}');
END;

CREATE TRIGGER events_image_changed AFTER UPDATE OF status, digest ON images
WHEN (OLD.status, OLD.digest) IS NOT (NEW.status, NEW.digest) BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES ('image.status_changed', NEW.owner_id, 'image', NEW.image_ref, NEW.image_ref,
        '{"from":"' || OLD.status || '","to":"' || NEW.status || '","digest":' || coalesce('"' || NEW.digest || '"', 'null') || '}');
END;

CREATE TRIGGER events_image_removed AFTER DELETE ON images WHEN OLD.status <> 'missing' BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES ('image.status_changed', OLD.owner_id, 'image', OLD.image_ref, OLD.image_ref,
        '{"from":"' || OLD.status || '","to":"missing","digest":null}');
END;

CREATE TRIGGER events_operation_finished AFTER UPDATE OF status ON operations
WHEN OLD.status <> NEW.status AND NEW.status IN ('succeeded', 'failed', 'cancelled') BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, reason, data_json)
    VALUES ('operation.finished', NEW.owner_id, 'operation', NEW.id, NEW.kind, NEW.status,
        '{"kind":"' || NEW.kind || '","status":"' || NEW.status || '","subject":{"type":"' || NEW.subject_type
            || '","id":"' || NEW.subject_id || '"},"error":' || coalesce(NEW.error_json, 'null')
            || ',"result":' || coalesce(NEW.result_json, 'null') || '}');
END;

CREATE TRIGGER events_operation_progress AFTER UPDATE OF status, phase, progress_json ON operations
WHEN NEW.status IN ('queued', 'running')
    AND (OLD.status, OLD.phase, OLD.progress_json) IS NOT (NEW.status, NEW.phase, NEW.progress_json)
    AND (OLD.status <> NEW.status OR OLD.phase <> NEW.phase OR NOT EXISTS (
        SELECT 1 FROM events WHERE subject_id = NEW.id AND type = 'operation.progress'
            AND at BETWEEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-0.9 seconds')
                AND strftime('%Y-%m-%dT%H:%M:%fZ', 'now')))
BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES ('operation.progress', NEW.owner_id, 'operation', NEW.id, NEW.kind,
        '{"kind":"' || NEW.kind || '","status":"' || NEW.status || '","phase":"' || NEW.phase || '","progress":'
            || NEW.progress_json || ',"subject":{"type":"' || NEW.subject_type || '","id":"' || NEW.subject_id || '"}}');
END;

CREATE TRIGGER events_operation_queued AFTER INSERT ON operations BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES ('operation.progress', NEW.owner_id, 'operation', NEW.id, NEW.kind,
        '{"kind":"' || NEW.kind || '","status":"' || NEW.status || '","phase":"' || NEW.phase || '","progress":'
            || NEW.progress_json || ',"subject":{"type":"' || NEW.subject_type || '","id":"' || NEW.subject_id || '"}}');
END;

CREATE TRIGGER events_port_added AFTER INSERT ON ports BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    SELECT 'workspace.updated', w.owner_id, 'workspace', w.id, w.name,
        '{"changed":["ports"],"port":"' || NEW.name || '"}'
    FROM workspaces w WHERE w.id = NEW.workspace_id AND w.status <> 'creating';
END;

CREATE TRIGGER events_port_removed AFTER DELETE ON ports BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    SELECT 'workspace.updated', w.owner_id, 'workspace', w.id, w.name,
        '{"changed":["ports"],"port":"' || OLD.name || '"}'
    FROM workspaces w WHERE w.id = OLD.workspace_id;
END;

CREATE TRIGGER events_registries AFTER INSERT ON audit
WHEN NEW.action = 'admin.registries' AND NEW.outcome = 'ok' BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('registries.changed', 'everyone', 'registries');
END;

CREATE TRIGGER events_supersede_capacity AFTER INSERT ON events WHEN NEW.type = 'capacity.changed' BEGIN
    DELETE FROM events WHERE subject_id = NEW.subject_id AND type = 'capacity.changed' AND id < NEW.id;
END;

CREATE TRIGGER events_supersede_progress AFTER INSERT ON events
WHEN NEW.type = 'operation.progress' OR NEW.type = 'operation.finished' BEGIN
    DELETE FROM events WHERE subject_id = NEW.subject_id AND type = 'operation.progress' AND id < NEW.id;
END;

CREATE TRIGGER events_supersede_registries AFTER INSERT ON events WHEN NEW.type = 'registries.changed' BEGIN
    DELETE FROM events WHERE subject_id = NEW.subject_id AND type = 'registries.changed' AND id < NEW.id;
END;

CREATE TRIGGER events_template_deleted AFTER DELETE ON templates BEGIN
    INSERT INTO events (type, owner_id, audience, subject_type, subject_id, subject_name)
    VALUES ('template.deleted', OLD.owner_id, CASE WHEN OLD.owner_id IS NOT NULL THEN 'owner'
            WHEN OLD.status = 'enabled' THEN 'everyone' ELSE 'administrators' END,
        'template', OLD.id, OLD.name);
END;

CREATE TRIGGER events_template_renamed AFTER UPDATE OF name ON templates WHEN OLD.name <> NEW.name BEGIN
    INSERT INTO events (type, owner_id, audience, subject_type, subject_id, subject_name, data_json)
    VALUES ('template.updated', NEW.owner_id, CASE WHEN NEW.owner_id IS NOT NULL THEN 'owner'
            WHEN NEW.status = 'enabled' THEN 'everyone' ELSE 'administrators' END,
        'template', NEW.id, NEW.name, '{"revision":' || NEW.revision || ',"status":"' || NEW.status || '"}');
END;

CREATE TRIGGER events_template_revision AFTER INSERT ON template_revisions BEGIN
    INSERT INTO events (type, owner_id, audience, subject_type, subject_id, subject_name, data_json)
    SELECT CASE WHEN NEW.revision > 1 THEN 'template.updated'
            WHEN NEW.bundle_digest IS NOT NULL THEN 'template.imported' ELSE 'template.created' END,
        t.owner_id, CASE WHEN t.owner_id IS NOT NULL THEN 'owner'
            WHEN t.status = 'enabled' THEN 'everyone' ELSE 'administrators' END,
        'template', t.id, t.name, '{"revision":' || NEW.revision || ',"status":"' || t.status || '"}'
    FROM templates t WHERE t.id = NEW.template_id;
END;

CREATE TRIGGER events_template_status AFTER UPDATE OF status ON templates WHEN OLD.status <> NEW.status BEGIN
    INSERT INTO events (type, owner_id, audience, subject_type, subject_id, subject_name, data_json)
    VALUES ('template.' || NEW.status, NEW.owner_id, iif(NEW.owner_id IS NULL, 'everyone', 'owner'),
        'template', NEW.id, NEW.name, '{"revision":' || NEW.revision || ',"status":"' || NEW.status || '"}');
END;

CREATE TRIGGER events_token_created AFTER INSERT ON tokens BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES ('token.created', NEW.user_id, 'token', NEW.id, NEW.name, '{"expires_at":"' || NEW.expires_at || '"}');
END;

CREATE TRIGGER events_token_ended AFTER UPDATE OF ended_at ON tokens
WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, reason)
    VALUES ('token.revoked', NEW.user_id, 'token', NEW.id, NEW.name, NEW.end_reason);
END;

CREATE TRIGGER events_workspace_created AFTER INSERT ON workspaces BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, reason, data_json)
    VALUES ('workspace.created', NEW.owner_id, 'workspace', NEW.id, NEW.name, NEW.status_reason,
        '{"status":"' || NEW.status || '","template_id":"' || NEW.template_id || '"}');
END;

CREATE TRIGGER events_workspace_deleted AFTER DELETE ON workspaces BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name)
    VALUES ('workspace.deleted', OLD.owner_id, 'workspace', OLD.id, OLD.name);
END;

CREATE TRIGGER events_workspace_status AFTER UPDATE OF status ON workspaces WHEN OLD.status <> NEW.status BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, reason, data_json)
    VALUES ('workspace.status_changed', NEW.owner_id, 'workspace', NEW.id, NEW.name, NEW.status_reason,
        '{"from":"' || OLD.status || '","to":"' || NEW.status || '","exit_code":' || coalesce(NEW.exit_code, 'null')
            || '}');
END;

CREATE TRIGGER events_workspace_updated AFTER UPDATE OF name, display_name, template_id, template_revision,
    image_ref, cpu_limit, memory_bytes, shm_bytes, pids_limit, gpu_count, gpu_mode, env_json, restart_on_boot,
    keep_until, command_json, network ON workspaces
WHEN (OLD.name, OLD.display_name, OLD.template_id, OLD.template_revision, OLD.image_ref, OLD.cpu_limit,
      OLD.memory_bytes, OLD.shm_bytes, OLD.pids_limit, OLD.gpu_count, OLD.gpu_mode, OLD.env_json,
      OLD.restart_on_boot, OLD.keep_until, OLD.command_json, OLD.network)
    IS NOT
     (NEW.name, NEW.display_name, NEW.template_id, NEW.template_revision, NEW.image_ref, NEW.cpu_limit,
      NEW.memory_bytes, NEW.shm_bytes, NEW.pids_limit, NEW.gpu_count, NEW.gpu_mode, NEW.env_json,
      NEW.restart_on_boot, NEW.keep_until, NEW.command_json, NEW.network)
BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES ('workspace.updated', NEW.owner_id, 'workspace', NEW.id, NEW.name, '{"changed":[' || ltrim(
        iif(OLD.name IS NOT NEW.name, ',"name"', '')
        || iif(OLD.display_name IS NOT NEW.display_name, ',"display_name"', '')
        || iif((OLD.template_id, OLD.template_revision, OLD.image_ref)
            IS NOT (NEW.template_id, NEW.template_revision, NEW.image_ref), ',"template"', '')
        || iif((OLD.cpu_limit, OLD.memory_bytes, OLD.shm_bytes, OLD.pids_limit, OLD.gpu_count, OLD.gpu_mode)
            IS NOT (NEW.cpu_limit, NEW.memory_bytes, NEW.shm_bytes, NEW.pids_limit, NEW.gpu_count, NEW.gpu_mode),
            ',"resources"', '')
        || iif(OLD.env_json IS NOT NEW.env_json, ',"env"', '')
        || iif(OLD.command_json IS NOT NEW.command_json, ',"command"', '')
        || iif(OLD.network IS NOT NEW.network, ',"network"', '')
        || iif(OLD.restart_on_boot IS NOT NEW.restart_on_boot, ',"restart_on_boot"', '')
        || iif(OLD.keep_until IS NOT NEW.keep_until, ',"keep_until"', ''), ',') || ']}');
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

CREATE TRIGGER last_account_id_is_kept AFTER INSERT ON users BEGIN
    UPDATE last_account_id SET id = max(id, NEW.id);
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

CREATE TRIGGER workspace_totals_grow AFTER INSERT ON workspaces BEGIN
    INSERT INTO workspace_totals (owner_id, total) VALUES (NEW.owner_id, 1)
    ON CONFLICT (owner_id) DO UPDATE SET total = total + 1;
END;

CREATE TRIGGER workspace_totals_move AFTER UPDATE OF owner_id ON workspaces WHEN OLD.owner_id <> NEW.owner_id BEGIN
    UPDATE workspace_totals SET total = total - 1 WHERE owner_id = OLD.owner_id;
    DELETE FROM workspace_totals WHERE owner_id = OLD.owner_id AND total = 0;
    INSERT INTO workspace_totals (owner_id, total) VALUES (NEW.owner_id, 1)
    ON CONFLICT (owner_id) DO UPDATE SET total = total + 1;
END;

CREATE TRIGGER workspace_totals_shrink AFTER DELETE ON workspaces BEGIN
    UPDATE workspace_totals SET total = total - 1 WHERE owner_id = OLD.owner_id;
    DELETE FROM workspace_totals WHERE owner_id = OLD.owner_id AND total = 0;
END;
