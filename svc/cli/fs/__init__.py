"""`svc fs`: files."""
