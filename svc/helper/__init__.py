"""The client of the root helper."""
