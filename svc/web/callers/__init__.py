"""Who calls: the listener, the peer or the credential of a request, and the `Host` that it names."""
