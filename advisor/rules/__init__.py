"""One file, one rule."""
