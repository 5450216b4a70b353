"""Device memory as arrays: allocated, copied, shared."""
