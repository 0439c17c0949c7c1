-- The user that an image's programs run as, when it is not root: {"name", "uid", "gid"}, each null if unknown.
ALTER TABLE images ADD COLUMN user_json TEXT;
