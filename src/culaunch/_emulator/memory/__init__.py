"""Memory of an emulated device: host ranges, shared and local arrays, generic addresses."""
