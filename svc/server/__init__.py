"""`svc server`: the supervisor and what it starts; imports nothing of the web."""
