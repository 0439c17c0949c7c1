-- What each user's disks hold, as its own agent measured it last, for administrators.
CREATE TABLE disk_usage (
    user_id INTEGER PRIMARY KEY REFERENCES users (id),
    requested_at TEXT,   -- while a measurement is waited for
    measured_at TEXT,
    figures_json TEXT,   -- of that measurement
    error TEXT           -- why the last attempt failed
) STRICT;
