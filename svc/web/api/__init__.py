"""The JSON API: one file per noun."""
