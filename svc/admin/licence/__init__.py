"""`svc admin license`: the licence on this host."""
