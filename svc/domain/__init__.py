"""Rules and queries: plain functions in noun modules."""
