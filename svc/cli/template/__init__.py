"""`svc template`: templates."""
