"""The command line: starts the parts and keeps them running."""
