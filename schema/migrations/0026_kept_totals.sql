-- How many rows the audit has of a user, and how many workspaces an owner has: a list names the number, and
-- counting cost it a millisecond for every 20,000 rows.
CREATE TABLE audit_totals (
    user_name TEXT PRIMARY KEY,
    total INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO audit_totals (user_name, total) SELECT user_name, count(*) FROM audit GROUP BY user_name;
CREATE TRIGGER audit_totals_grow AFTER INSERT ON audit BEGIN
    INSERT INTO audit_totals (user_name, total) VALUES (NEW.user_name, 1)
    ON CONFLICT (user_name) DO UPDATE SET total = total + 1;
END;
CREATE TRIGGER audit_totals_shrink AFTER DELETE ON audit BEGIN
    UPDATE audit_totals SET total = total - 1 WHERE user_name = OLD.user_name;
    DELETE FROM audit_totals WHERE user_name = OLD.user_name AND total = 0;
END;

CREATE TABLE workspace_totals (
    owner_id INTEGER PRIMARY KEY,
    total INTEGER NOT NULL
) STRICT;
INSERT INTO workspace_totals (owner_id, total) SELECT owner_id, count(*) FROM workspaces GROUP BY owner_id;
CREATE TRIGGER workspace_totals_grow AFTER INSERT ON workspaces BEGIN
    INSERT INTO workspace_totals (owner_id, total) VALUES (NEW.owner_id, 1)
    ON CONFLICT (owner_id) DO UPDATE SET total = total + 1;
END;
CREATE TRIGGER workspace_totals_shrink AFTER DELETE ON workspaces BEGIN
    UPDATE workspace_totals SET total = total - 1 WHERE owner_id = OLD.owner_id;
    DELETE FROM workspace_totals WHERE owner_id = OLD.owner_id AND total = 0;
END;
CREATE TRIGGER workspace_totals_move AFTER UPDATE OF owner_id ON workspaces WHEN OLD.owner_id <> NEW.owner_id BEGIN
    UPDATE workspace_totals SET total = total - 1 WHERE owner_id = OLD.owner_id;
    DELETE FROM workspace_totals WHERE owner_id = OLD.owner_id AND total = 0;
    INSERT INTO workspace_totals (owner_id, total) VALUES (NEW.owner_id, 1)
    ON CONFLICT (owner_id) DO UPDATE SET total = total + 1;
END;
