"""The OCI runtime: containers as crun records them, and processes in them."""
