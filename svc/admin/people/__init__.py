"""`svc admin`: accounts of people: create, list, change and delete them."""
