"""Administration: accounts with their usage, the audit, reports about the host."""
