"""Evidence in, findings out. Pure."""
