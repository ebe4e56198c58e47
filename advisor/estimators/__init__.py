"""One physical question, one file; pure functions with ranges."""
