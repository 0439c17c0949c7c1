-- Sessions, personal access tokens, wrong logins, and the chain of the audit table.
-- Of every secret only a digest is kept.

ALTER TABLE users ADD COLUMN password_closed INTEGER NOT NULL DEFAULT 0 CHECK (password_closed IN (0, 1));
ALTER TABLE users ADD COLUMN failed_logins INTEGER NOT NULL DEFAULT 0;   -- in a row, from anywhere

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,                  -- names the row, opens nothing
    user_id INTEGER NOT NULL REFERENCES users (id),
    cookie_hash TEXT NOT NULL UNIQUE,     -- SHA-256 of the cookie's random value
    header_hash TEXT NOT NULL,            -- SHA-256 of the secret that the page sends as a header
    address TEXT NOT NULL,                -- where the login came from
    created_at TEXT NOT NULL,
    last_used_at TEXT NOT NULL            -- written once a minute at most
) STRICT;
CREATE INDEX sessions_owner ON sessions (user_id);

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
CREATE INDEX tokens_owner ON tokens (user_id);

CREATE TABLE login_failures (
    -- one row for each subject (a user, an address) of each try that was not a success; soon removed
    subject TEXT NOT NULL,                -- keyed digest of what was tried: names nobody, holds no mistyped password
    at TEXT NOT NULL
) STRICT;
CREATE INDEX login_failures_subject ON login_failures (subject, at);

-- SHA-256 over the hash of the row before and this row's own values; empty in rows older than the chain.
ALTER TABLE audit ADD COLUMN hash TEXT NOT NULL DEFAULT '';
CREATE INDEX audit_owner ON audit (user_id, id);
CREATE INDEX audit_request ON audit (request_id);
CREATE TRIGGER audit_keeps_its_rows BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'audit rows are only ever added');
END;
CREATE TRIGGER audit_keeps_its_values BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'audit rows are only ever added');
END;
