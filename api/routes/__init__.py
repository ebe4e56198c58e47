"""One REST resource, one file."""
