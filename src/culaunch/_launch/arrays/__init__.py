"""Memory of devices as arrays: allocated, copied, shared."""
