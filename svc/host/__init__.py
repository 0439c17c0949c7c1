"""The host below the database: owner and accounts, processes, notes and files of root, time and ids."""
