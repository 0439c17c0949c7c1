-- A workspace may have a command of its own instead of its template's.

-- a JSON array of words; NULL for the template's command, or the image's
ALTER TABLE workspaces ADD COLUMN command_json TEXT;
