"""What runs on a GPU host: sources, fold, sinks. Two dependencies."""
