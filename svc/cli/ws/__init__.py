"""`svc ws`: workspaces."""
