"""Native calls of Triton's own kernels: their dependencies, and the compilations for them."""
