"""Live views of the service and of a running workspace: events, logs, terminals, what it uses."""
