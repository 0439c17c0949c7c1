"""Containers of workspaces."""
