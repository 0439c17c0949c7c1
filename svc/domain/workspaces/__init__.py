"""Workspaces: states, transitions, and what runs in them."""
