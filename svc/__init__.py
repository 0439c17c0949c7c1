"""svc: containerised workspaces on a shared Linux host."""
