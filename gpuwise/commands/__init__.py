"""One command, one file; ``cli`` puts them together."""
