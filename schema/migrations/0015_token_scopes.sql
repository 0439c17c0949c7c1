-- What a token may do besides workspaces, templates, images and operations: names, separated by blanks.
ALTER TABLE tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '' CHECK (scopes IN ('', 'files'));
