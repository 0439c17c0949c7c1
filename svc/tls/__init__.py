"""TLS certificates and contexts."""
