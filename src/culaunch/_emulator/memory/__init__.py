"""Memory of an emulated device: ranges of the host's, shared and local arrays, the heap."""
