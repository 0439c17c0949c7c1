"""The pages of the browser: shells without data, static files, and the policy that holds for both.

Only the TLS listener has them. Everything is read, joined, rendered and compressed once, when the listener
starts, and answered from memory: no request names a file of the disk.
"""
