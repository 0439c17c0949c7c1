"""`svc admin`: one file per word; opens the database itself, needs no running server."""
