-- Users see their sessions, and what others did to what is theirs.

-- a short name from a fixed list, such as "Firefox on Linux"; '' for sessions of older releases
ALTER TABLE sessions ADD COLUMN browser TEXT NOT NULL DEFAULT '';

CREATE TABLE audit_concerns (
    -- an index, not evidence: the row of the audit itself has the owner's name and is in the chain
    audit_id INTEGER PRIMARY KEY REFERENCES audit (id) ON DELETE CASCADE,
    owner_id INTEGER NOT NULL          -- whose thing somebody else acted on
) STRICT;

CREATE INDEX audit_concerns_owner ON audit_concerns (owner_id, audit_id);

INSERT INTO audit_concerns (audit_id, owner_id)
SELECT a.id, w.owner_id FROM workspaces w JOIN audit a ON a.target = w.id
WHERE a.action LIKE 'workspace.%' AND a.outcome <> 'not_found' AND a.user_id IS NOT w.owner_id;

INSERT INTO audit_concerns (audit_id, owner_id)
SELECT a.id, u.id FROM users u JOIN audit a ON a.target = u.name
WHERE (a.action LIKE 'user.%' OR a.action IN ('admin.create_user', 'admin.edit_user', 'admin.set_password',
        'admin.revoke_tokens', 'admin.delete_user')) AND a.outcome <> 'not_found'
    AND a.user_id IS NOT u.id AND a.at >= u.created_at;
