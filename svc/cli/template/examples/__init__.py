"""`svc template create --example` and `svc template examples`: templates of common applications."""
