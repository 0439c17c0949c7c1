"""Input and output of streams."""
