"""Money, energy, carbon. Pure."""
