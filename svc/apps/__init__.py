"""Apps of workspaces in the browser: the rules of what passes between a browser and a program."""
