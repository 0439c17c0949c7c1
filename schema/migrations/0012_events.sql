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

CREATE INDEX events_owner ON events (owner_id, id);
CREATE INDEX events_subject ON events (subject_id, type, at);
CREATE INDEX events_shared ON events (id) WHERE audience <> 'owner';

-- Of these only the newest is of use to anybody.
CREATE TRIGGER events_supersede AFTER INSERT ON events
WHEN NEW.type IN ('capacity.changed', 'registries.changed', 'operation.progress', 'operation.finished')
BEGIN
    DELETE FROM events WHERE subject_id = NEW.subject_id AND id < NEW.id
        AND type = iif(NEW.type = 'operation.finished', 'operation.progress', NEW.type);
END;

-- workspaces

CREATE TRIGGER events_workspace_created AFTER INSERT ON workspaces BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, reason, data_json)
    VALUES ('workspace.created', NEW.owner_id, 'workspace', NEW.id, NEW.name, NEW.status_reason,
        '{"status":"' || NEW.status || '","template_id":"' || NEW.template_id || '"}');
END;

CREATE TRIGGER events_workspace_status AFTER UPDATE OF status ON workspaces WHEN OLD.status <> NEW.status BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, reason, data_json)
    VALUES ('workspace.status_changed', NEW.owner_id, 'workspace', NEW.id, NEW.name, NEW.status_reason,
        '{"from":"' || OLD.status || '","to":"' || NEW.status || '","exit_code":' || coalesce(NEW.exit_code, 'null')
            || '}');
END;

CREATE TRIGGER events_workspace_updated AFTER UPDATE OF name, display_name, template_id, template_revision,
    image_ref, cpu_limit, memory_bytes, shm_bytes, pids_limit, gpu_count, gpu_mode, env_json, restart_on_boot,
    keep_until ON workspaces
WHEN (OLD.name, OLD.display_name, OLD.template_id, OLD.template_revision, OLD.image_ref, OLD.cpu_limit,
      OLD.memory_bytes, OLD.shm_bytes, OLD.pids_limit, OLD.gpu_count, OLD.gpu_mode, OLD.env_json,
      OLD.restart_on_boot, OLD.keep_until)
    IS NOT
     (NEW.name, NEW.display_name, NEW.template_id, NEW.template_revision, NEW.image_ref, NEW.cpu_limit,
      NEW.memory_bytes, NEW.shm_bytes, NEW.pids_limit, NEW.gpu_count, NEW.gpu_mode, NEW.env_json,
      NEW.restart_on_boot, NEW.keep_until)
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
        || iif(OLD.restart_on_boot IS NOT NEW.restart_on_boot, ',"restart_on_boot"', '')
        || iif(OLD.keep_until IS NOT NEW.keep_until, ',"keep_until"', ''), ',') || ']}');
END;

CREATE TRIGGER events_workspace_deleted AFTER DELETE ON workspaces BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name)
    VALUES ('workspace.deleted', OLD.owner_id, 'workspace', OLD.id, OLD.name);
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

CREATE TRIGGER events_gpu_health AFTER UPDATE OF health ON workspaces
WHEN OLD.health <> NEW.health AND (NEW.health = 'gpu_lost' OR (OLD.health = 'gpu_lost' AND NEW.health = 'ok'))
BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES (iif(NEW.health = 'gpu_lost', 'gpu.lost', 'gpu.restored'), NEW.owner_id, 'workspace', NEW.id, NEW.name,
        '{"gpus":[' || coalesce((SELECT group_concat('"' || gpu || '"') FROM gpu_leases WHERE workspace_id = NEW.id), '')
            || ']}');
END;

-- capacity: GPUs, what runs, and what anybody may have

CREATE TRIGGER events_capacity_leased AFTER INSERT ON gpu_leases BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_released AFTER DELETE ON gpu_leases BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_running AFTER UPDATE OF status ON workspaces
WHEN (OLD.status IN ('stopped', 'failed', 'creating')) <> (NEW.status IN ('stopped', 'failed', 'creating')) BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_health AFTER UPDATE OF health ON workspaces
WHEN (OLD.health = 'gpu_lost') <> (NEW.health = 'gpu_lost') BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_quota_added AFTER INSERT ON quotas BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_quota_changed AFTER UPDATE ON quotas BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_quota_removed AFTER DELETE ON quotas BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

CREATE TRIGGER events_capacity_quota_of_user AFTER UPDATE OF quota ON users WHEN OLD.quota IS NOT NEW.quota BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('capacity.changed', 'everyone', 'host');
END;

-- the registry policy is a file of root's; the audit has when it was changed

CREATE TRIGGER events_registries AFTER INSERT ON audit
WHEN NEW.action = 'admin.registries' AND NEW.outcome = 'ok' BEGIN
    INSERT INTO events (type, audience, subject_type) VALUES ('registries.changed', 'everyone', 'registries');
END;

-- operations

CREATE TRIGGER events_operation_queued AFTER INSERT ON operations BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES ('operation.progress', NEW.owner_id, 'operation', NEW.id, NEW.kind,
        '{"kind":"' || NEW.kind || '","status":"' || NEW.status || '","phase":"' || NEW.phase || '","progress":'
            || NEW.progress_json || ',"subject":{"type":"' || NEW.subject_type || '","id":"' || NEW.subject_id || '"}}');
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

CREATE TRIGGER events_operation_finished AFTER UPDATE OF status ON operations
WHEN OLD.status <> NEW.status AND NEW.status IN ('succeeded', 'failed', 'cancelled') BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, reason, data_json)
    VALUES ('operation.finished', NEW.owner_id, 'operation', NEW.id, NEW.kind, NEW.status,
        '{"kind":"' || NEW.kind || '","status":"' || NEW.status || '","subject":{"type":"' || NEW.subject_type
            || '","id":"' || NEW.subject_id || '"},"error":' || coalesce(NEW.error_json, 'null')
            || ',"result":' || coalesce(NEW.result_json, 'null') || '}');
END;

-- images

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

-- templates: a global one is everybody's while it is enabled, else the administrators'

CREATE TRIGGER events_template_revision AFTER INSERT ON template_revisions BEGIN
    INSERT INTO events (type, owner_id, audience, subject_type, subject_id, subject_name, data_json)
    SELECT CASE WHEN NEW.revision > 1 THEN 'template.updated'
            WHEN NEW.bundle_digest IS NOT NULL THEN 'template.imported' ELSE 'template.created' END,
        t.owner_id, CASE WHEN t.owner_id IS NOT NULL THEN 'owner'
            WHEN t.status = 'enabled' THEN 'everyone' ELSE 'administrators' END,
        'template', t.id, t.name, '{"revision":' || NEW.revision || ',"status":"' || t.status || '"}'
    FROM templates t WHERE t.id = NEW.template_id;
END;

CREATE TRIGGER events_template_renamed AFTER UPDATE OF name ON templates WHEN OLD.name <> NEW.name BEGIN
    INSERT INTO events (type, owner_id, audience, subject_type, subject_id, subject_name, data_json)
    VALUES ('template.updated', NEW.owner_id, CASE WHEN NEW.owner_id IS NOT NULL THEN 'owner'
            WHEN NEW.status = 'enabled' THEN 'everyone' ELSE 'administrators' END,
        'template', NEW.id, NEW.name, '{"revision":' || NEW.revision || ',"status":"' || NEW.status || '"}');
END;

CREATE TRIGGER events_template_status AFTER UPDATE OF status ON templates WHEN OLD.status <> NEW.status BEGIN
    INSERT INTO events (type, owner_id, audience, subject_type, subject_id, subject_name, data_json)
    VALUES ('template.' || NEW.status, NEW.owner_id, iif(NEW.owner_id IS NULL, 'everyone', 'owner'),
        'template', NEW.id, NEW.name, '{"revision":' || NEW.revision || ',"status":"' || NEW.status || '"}');
END;

CREATE TRIGGER events_template_deleted AFTER DELETE ON templates BEGIN
    INSERT INTO events (type, owner_id, audience, subject_type, subject_id, subject_name)
    VALUES ('template.deleted', OLD.owner_id, CASE WHEN OLD.owner_id IS NOT NULL THEN 'owner'
            WHEN OLD.status = 'enabled' THEN 'everyone' ELSE 'administrators' END,
        'template', OLD.id, OLD.name);
END;

-- tokens

CREATE TRIGGER events_token_created AFTER INSERT ON tokens BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)
    VALUES ('token.created', NEW.user_id, 'token', NEW.id, NEW.name, '{"expires_at":"' || NEW.expires_at || '"}');
END;

CREATE TRIGGER events_token_ended AFTER UPDATE OF ended_at ON tokens
WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL BEGIN
    INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, reason)
    VALUES ('token.revoked', NEW.user_id, 'token', NEW.id, NEW.name, NEW.end_reason);
END;
