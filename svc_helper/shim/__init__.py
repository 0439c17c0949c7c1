"""The shim of a running workspace: its open ports and its launchers."""
