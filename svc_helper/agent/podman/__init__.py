"""Podman's API and command line."""
