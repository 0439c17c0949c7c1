"""Administration: accounts with their usage, reports about the host."""
