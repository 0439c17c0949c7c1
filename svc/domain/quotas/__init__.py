"""Quotas: policies, resources and their use."""
