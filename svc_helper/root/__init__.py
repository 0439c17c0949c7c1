"""The resident root helper."""
