"""What goes on in a running workspace while somebody watches: terminals, and commands with an input."""
