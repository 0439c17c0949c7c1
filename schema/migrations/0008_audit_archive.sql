-- Rows of the audit may be moved to an archive (`svc admin audit archive`), the oldest first.

CREATE TABLE audit_archived (
    -- the last row that was moved: the chain in the database begins behind it; one row or none
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id INTEGER NOT NULL,
    hash TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;

DROP TRIGGER audit_keeps_its_rows;
CREATE TRIGGER audit_keeps_its_rows BEFORE DELETE ON audit
WHEN OLD.id > coalesce((SELECT id FROM audit_archived), 0) BEGIN
    SELECT RAISE(ABORT, 'audit rows are only ever added');
END;
