-- Apps in the browser: who is signed in to which port of which workspace. Each app has an address of its own,
-- and there a cookie of its own, which opens nothing else.

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

CREATE INDEX app_sessions_user ON app_sessions (user_id);
CREATE INDEX app_sessions_port ON app_sessions (workspace_id, port);

CREATE TRIGGER app_sessions_end_with_their_session AFTER DELETE ON sessions BEGIN
    DELETE FROM app_sessions WHERE kind = 'session' AND credential = OLD.id;
END;

CREATE TRIGGER app_sessions_end_with_their_account AFTER UPDATE OF disabled ON users WHEN NEW.disabled BEGIN
    DELETE FROM app_sessions WHERE user_id = NEW.id;
END;
