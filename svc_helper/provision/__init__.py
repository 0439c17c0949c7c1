"""Account provisioning as root, for `svc admin` only."""
