"""From a kernel and a signature to variants that can be saved."""
