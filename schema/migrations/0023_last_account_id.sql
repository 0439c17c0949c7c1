-- The highest id that an account ever had: rows that outlive an account (the audit's, also those moved to
-- files, and Dockerfiles that it wrote) know it by its id, which no later account may have.
CREATE TABLE last_account_id (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id INTEGER NOT NULL
) STRICT;

INSERT INTO last_account_id (one, id)
SELECT 1, max(
    coalesce((SELECT max(id) FROM users), 0),
    coalesce((SELECT max(user_id) FROM audit), 0),
    coalesce((SELECT max(owner_id) FROM audit_concerns), 0),
    coalesce((SELECT max(owner_id) FROM events), 0),
    coalesce((SELECT max(written_by) FROM template_revisions), 0)
);

CREATE TRIGGER last_account_id_is_kept AFTER INSERT ON users BEGIN
    UPDATE last_account_id SET id = max(id, NEW.id);
END;
