"""A simulated fleet: what its GPUs, engines and processes would say at any instant, without a GPU."""
