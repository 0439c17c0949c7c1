-- The days of the audit as runs of rows instead of an index of all rows, which was a tenth of what a start leaves.
CREATE TABLE audit_days (
    -- rows of one day that follow each other; a day whose clock was set back has more than one run
    first_id INTEGER PRIMARY KEY,  -- of the run's rows; the last one's comes before the next run's
    day TEXT NOT NULL
) STRICT;
INSERT INTO audit_days (first_id, day)
SELECT row.id, substr(row.at, 1, 10) FROM audit row LEFT JOIN audit before ON before.id = row.id - 1
WHERE substr(row.at, 1, 10) IS NOT substr(before.at, 1, 10);
CREATE TRIGGER audit_begins_a_day AFTER INSERT ON audit
WHEN substr(NEW.at, 1, 10) IS NOT (SELECT substr(at, 1, 10) FROM audit WHERE id = NEW.id - 1) BEGIN
    INSERT OR REPLACE INTO audit_days (first_id, day) VALUES (NEW.id, substr(NEW.at, 1, 10));
END;
DROP INDEX audit_day;

-- Each index ends with the id anyway: naming it stored it twice.
DROP INDEX audit_owner;
CREATE INDEX audit_owner ON audit (user_id);
