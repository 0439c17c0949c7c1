"""What goes in and what comes out, one file per noun: input checks and documentation alike."""
