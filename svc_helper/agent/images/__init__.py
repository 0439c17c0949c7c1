"""Images in the user's own store."""
