"""Facts that ship: GPU specs, prices, grid carbon, LLM architectures, and their typed loaders."""
