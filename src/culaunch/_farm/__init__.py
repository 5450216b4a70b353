"""Work on a user's executor: of processes, of a cluster, of a batch system."""
