"""Schemas of requests and responses, one file per noun: input validation and documentation."""
