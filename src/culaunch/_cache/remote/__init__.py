"""A cache behind the local one, on a server that many machines reach."""
