"""Streams: connections that last, all served by one thread of a listener's process."""
