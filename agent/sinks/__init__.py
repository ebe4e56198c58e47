"""Where samples go; only here does the agent know the store."""
