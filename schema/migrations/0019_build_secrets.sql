-- Builds whose owner's agent keeps secrets for them; the values are nowhere in the database.
CREATE TABLE build_secrets (
    operation_id TEXT PRIMARY KEY,  -- the build, which is queued after its secrets are there
    owner_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at TEXT NOT NULL
) STRICT;
