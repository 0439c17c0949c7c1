-- Dockerfile-backed templates with their build contexts, reviews, sealed variables, quotas.
-- Contexts live here, so that a backup or a rollback has them with the rows that need them.

CREATE TABLE files (
    -- contents of build contexts: each is there once, whoever uses it
    sha256 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

CREATE TABLE context_files (
    -- one build context: `context` is the digest of its own listing, so clones and revisions share it
    context TEXT NOT NULL,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES files (sha256),
    executable INTEGER NOT NULL CHECK (executable IN (0, 1)),
    PRIMARY KEY (context, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX context_files_sha256 ON context_files (sha256);

ALTER TABLE template_revisions ADD COLUMN dockerfile TEXT;
ALTER TABLE template_revisions ADD COLUMN context TEXT;   -- of context_files; NULL: no files
ALTER TABLE template_revisions ADD COLUMN local_only INTEGER NOT NULL DEFAULT 0 CHECK (local_only IN (0, 1));
ALTER TABLE template_revisions ADD COLUMN written_by INTEGER;   -- who wrote the Dockerfile; NULL: it came from elsewhere
ALTER TABLE template_revisions ADD COLUMN sealed_json TEXT NOT NULL DEFAULT '{}';   -- secret variables, encrypted
ALTER TABLE template_revisions ADD COLUMN bundle_digest TEXT;   -- of the bundle it was imported from
ALTER TABLE template_revisions ADD COLUMN images_json TEXT NOT NULL DEFAULT '[]';   -- what a build takes from registries
ALTER TABLE template_revisions ADD COLUMN findings_json TEXT NOT NULL DEFAULT '[]';   -- of the review, as far as they stay true
CREATE INDEX template_revisions_context ON template_revisions (context) WHERE context IS NOT NULL;

ALTER TABLE templates ADD COLUMN reviewed_revision INTEGER;   -- the last one that was enabled
UPDATE templates SET reviewed_revision = revision WHERE status = 'enabled';
UPDATE templates SET managed = 1 WHERE owner_id IS NULL;

CREATE TABLE quotas (
    -- named policies; NULL is unlimited
    name TEXT PRIMARY KEY,
    max_workspaces INTEGER,
    max_running INTEGER,
    max_gpus INTEGER,
    max_cpu INTEGER,   -- thousandths of a core
    max_memory_bytes INTEGER,
    max_image_bytes INTEGER
) STRICT;
INSERT INTO quotas (name) VALUES ('default');
ALTER TABLE users ADD COLUMN quota TEXT REFERENCES quotas (name);   -- NULL: default

CREATE INDEX operations_kind ON operations (owner_id, kind, created_at);
