-- Who works on what: a number that a process holds for as long as it lives and works (svc/db/held.py).

ALTER TABLE workspaces ADD COLUMN work INTEGER;   -- in a transition: of the call that carries it out

CREATE TABLE audit_open (
    -- an action whose outcome has no row yet
    work INTEGER PRIMARY KEY,
    audit_id INTEGER NOT NULL REFERENCES audit (id)   -- its row `begun`
) STRICT;
