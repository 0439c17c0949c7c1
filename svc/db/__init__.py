"""The database: connecting, models, migrations."""
