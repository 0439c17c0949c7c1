-- Answers and rounds whose cost does not grow with what they leave out (docs/performance.md).

-- The worker's rounds: few rows of many.
CREATE INDEX workspaces_idle ON workspaces (idle_since) WHERE idle_since IS NOT NULL;
CREATE INDEX workspaces_health ON workspaces (health) WHERE health <> 'unknown';
CREATE INDEX workspaces_rebooted ON workspaces (status_since) WHERE status_reason = 'host_reboot';

CREATE INDEX workspaces_template ON workspaces (template_id, template_revision);
CREATE INDEX templates_owner ON templates (owner_id);

-- The audit's filters. Of actions and outcomes only those that somebody would search for: the others are
-- so many that an index would be as long to read as the rows. Half of a request's random id tells it from
-- others, and a day where rows of a time begin and end.
DROP INDEX audit_request;
CREATE INDEX audit_request ON audit (substr(request_id, 5, 8));
CREATE INDEX audit_day ON audit (substr(at, 1, 10));
CREATE INDEX audit_user ON audit (user_name);
CREATE INDEX audit_action ON audit (action)
WHERE action NOT IN ('workspace.start', 'workspace.stop', 'workspace.exec', 'fs.roots', 'fs.list', 'fs.read',
    'fs.download', 'fs.upload');
CREATE INDEX audit_outcome ON audit (outcome) WHERE outcome NOT IN ('begun', 'ok');
