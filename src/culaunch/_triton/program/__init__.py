"""A program that is run with all of its Triton kernels native."""
