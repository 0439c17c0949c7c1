-- Lists of workspaces say why the last start of one failed.

-- {code, message, at}: nothing of what a program has printed; NULL after a start that succeeded
ALTER TABLE workspaces ADD COLUMN last_error_json TEXT;
