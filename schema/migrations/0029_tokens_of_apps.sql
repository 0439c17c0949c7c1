-- Tokens for programs of workspaces: '' opens no app, '*' every one that the owner may open, WORKSPACE/PORT (the
-- workspace by its id) that one, and nothing else of the service.
ALTER TABLE tokens ADD COLUMN apps TEXT NOT NULL DEFAULT '';
