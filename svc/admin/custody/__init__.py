"""`svc admin backup`: snapshots of the database, and what is kept beside them."""
