"""The command line itself: declared arguments, their parser, output and progress, local files."""
