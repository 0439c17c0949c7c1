-- Who may connect to a port: its owner, or every user of the host.

ALTER TABLE ports ADD COLUMN access TEXT NOT NULL DEFAULT 'owner' CHECK (access IN ('owner', 'host'));
