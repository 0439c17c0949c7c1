-- Workspaces of one owner reach each other by name on a network of that owner's Podman.

-- the network's name among its owner's; NULL without one
ALTER TABLE workspaces ADD COLUMN network TEXT;
