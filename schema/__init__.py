"""Migrations and the generated descriptions of the schema."""
