-- Where users have logged in: failures of others do not close the login there.

CREATE TABLE login_places (
    user_id INTEGER NOT NULL REFERENCES users (id),
    client TEXT NOT NULL,                 -- an address, or the network that counts as one client
    at TEXT NOT NULL,                     -- of the last login
    failures INTEGER NOT NULL DEFAULT 0,  -- in a row since then
    PRIMARY KEY (user_id, client)
) STRICT, WITHOUT ROWID;
