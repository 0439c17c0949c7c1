-- One-time tickets: a page's plain link or WebSocket carries one where it can send no header.

CREATE TABLE tickets (
    secret_hash TEXT PRIMARY KEY,         -- SHA-256 of the ticket
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('session', 'pat', 'peer')),
    credential TEXT NOT NULL,             -- the id of the session or token that it was issued to
    purpose TEXT NOT NULL,                -- the endpoint that it opens
    subject TEXT NOT NULL,                -- SHA-256 of the path and the query that it opens
    expires_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX tickets_owner ON tickets (user_id);

CREATE TRIGGER tickets_end_with_their_session AFTER DELETE ON sessions BEGIN
    DELETE FROM tickets WHERE kind = 'session' AND credential = OLD.id;
END;

CREATE TRIGGER tickets_end_with_their_token AFTER UPDATE OF ended_at ON tokens WHEN NEW.ended_at IS NOT NULL BEGIN
    DELETE FROM tickets WHERE kind = 'pat' AND credential = NEW.id;
END;

CREATE TRIGGER tickets_end_with_their_account AFTER UPDATE OF disabled ON users WHEN NEW.disabled BEGIN
    DELETE FROM tickets WHERE user_id = NEW.id;
END;
