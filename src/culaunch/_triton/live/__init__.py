"""Native calls of Triton's own kernels: what they depend on, what is compiled for them."""
