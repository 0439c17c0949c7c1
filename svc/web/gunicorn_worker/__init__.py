"""Everything that touches gunicorn's private parts."""
