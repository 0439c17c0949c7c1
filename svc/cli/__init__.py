"""The client commands: one file per command word, parser beside handler."""
