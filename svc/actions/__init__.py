"""What can be done with the service: one row an action, and what is made from the rows."""
