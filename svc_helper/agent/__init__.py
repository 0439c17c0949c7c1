"""The user's side: already that user, no privilege left."""
