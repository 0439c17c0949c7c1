-- Workspaces of one command, which the service deletes if the client that was to do it has gone.
ALTER TABLE workspaces ADD COLUMN delete_when_stopped INTEGER NOT NULL DEFAULT 0
    CHECK (delete_when_stopped IN (0, 1));

CREATE INDEX workspaces_deleted_when_stopped ON workspaces (status_since) WHERE delete_when_stopped = 1;
