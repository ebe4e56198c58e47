"""Words, units and facts every other part shares. Standard library only."""
