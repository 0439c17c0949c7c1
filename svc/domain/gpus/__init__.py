"""GPUs of the host: inventory, use by processes, health."""
