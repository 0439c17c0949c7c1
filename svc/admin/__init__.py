"""`svc admin`: one file per command; they open the database themselves and need no running server."""
