"""`svc admin`: what is policy of the host: quotas, and the registries that images may come from."""
