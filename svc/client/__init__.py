"""The client of the service's socket: requests, files and WebSockets, and what may be wrong with a reply."""
