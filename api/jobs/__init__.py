"""One job, one function of now."""
