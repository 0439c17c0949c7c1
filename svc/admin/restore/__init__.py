"""`svc admin restore` and `checkpoint`: a snapshot becomes the live database."""
