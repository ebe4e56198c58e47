"""Pure functions from measured figures to physical ones: formula and source in each docstring, ranges instead of points."""
