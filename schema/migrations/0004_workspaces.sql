-- GPU leases, ports, activity: what a workspace holds of its host while it runs.

CREATE TABLE gpu_leases (
    -- taken with the start, gone with the confirmed stop; one exclusive holder, or several that share
    gpu TEXT NOT NULL,   -- NVML's uuid
    workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    mode TEXT NOT NULL CHECK (mode IN ('exclusive', 'shared')),
    taken_at TEXT NOT NULL,
    PRIMARY KEY (gpu, workspace_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX gpu_leases_workspace ON gpu_leases (workspace_id);

CREATE TRIGGER gpu_leases_exclude BEFORE INSERT ON gpu_leases
WHEN EXISTS (SELECT 1 FROM gpu_leases l WHERE l.gpu = NEW.gpu AND l.workspace_id <> NEW.workspace_id
    AND (l.mode = 'exclusive' OR NEW.mode = 'exclusive'))
BEGIN
    SELECT RAISE(ABORT, 'the GPU is leased');
END;

-- No row says stopped before its container was seen not to run: then nothing of it can use a GPU.
CREATE TRIGGER gpu_leases_end AFTER UPDATE OF status ON workspaces WHEN NEW.status = 'stopped'
BEGIN
    DELETE FROM gpu_leases WHERE workspace_id = NEW.id;
END;

CREATE TABLE ports (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    container_port INTEGER NOT NULL CHECK (container_port BETWEEN 1 AND 65535),
    host_port INTEGER NOT NULL UNIQUE CHECK (host_port BETWEEN 1 AND 65535),   -- on 127.0.0.1
    created_at TEXT NOT NULL,
    PRIMARY KEY (workspace_id, name)
) STRICT, WITHOUT ROWID;

ALTER TABLE workspaces ADD COLUMN limits_missing_json TEXT NOT NULL DEFAULT '[]';   -- of its last start: what this host could not apply
ALTER TABLE workspaces ADD COLUMN idle_since TEXT;   -- since when nothing happened in it; NULL: in use, or nobody looks
ALTER TABLE workspaces ADD COLUMN keep_until TEXT;   -- the idle policy leaves it alone until then
