-- What a user's images take together, with layers that they share once, as the store was last read.
ALTER TABLE users ADD COLUMN image_bytes INTEGER;  -- NULL until then
