"""Images in each user's own store."""
