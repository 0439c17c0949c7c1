"""The database: connection, transactions, migrations."""
