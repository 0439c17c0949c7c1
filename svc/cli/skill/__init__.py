"""`svc skill`: the embedded skill on the use of svc, and its installation for coding agents."""
