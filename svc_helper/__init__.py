"""The root helper and the user agents; the standard library and nothing of svc."""
