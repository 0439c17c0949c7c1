"""The licence: the trial, the signed file, and what a lapsed one stops."""
