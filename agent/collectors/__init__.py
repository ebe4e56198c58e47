"""What is read, one topic a module: the driver's (run in the driver process) and the host's."""
