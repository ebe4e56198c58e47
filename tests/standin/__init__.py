"""A driver without a GPU: a small ``libnvidia-ml.so.1`` whose every answer comes from a scenario file."""
