"""Queued operations and the reconciler that keeps the database true to Podman."""
