-- What is behind a port, and whether its number inside is the host's.

ALTER TABLE ports ADD COLUMN kind TEXT NOT NULL DEFAULT 'http'
    CHECK (kind IN ('http', 'https', 'tcp', 'ssh', 'postgres'));
-- the login inside that a command names; NULL: the usual one of its kind
ALTER TABLE ports ADD COLUMN user TEXT;
-- 1: container_port is host_port, at each start; 0: it is fixed
ALTER TABLE ports ADD COLUMN follows INTEGER NOT NULL DEFAULT 0 CHECK (follows IN (0, 1));
