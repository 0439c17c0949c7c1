"""`svc admin backup`: snapshots of the database, recovery sets, and what is kept beside them."""
