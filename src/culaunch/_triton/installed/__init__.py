"""Triton's own kernels while their calls are native."""
