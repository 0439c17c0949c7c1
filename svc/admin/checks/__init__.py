"""Checks of `svc admin doctor`: a module for each subject."""
