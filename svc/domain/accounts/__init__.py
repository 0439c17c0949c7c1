"""Accounts: users, their credentials and their status."""
