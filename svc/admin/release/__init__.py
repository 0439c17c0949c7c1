"""`svc admin update` and `rollback`: signed releases, and the switch of the installed version."""
