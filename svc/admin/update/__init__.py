"""`svc admin update`: signed releases, from their source to the installed package."""
