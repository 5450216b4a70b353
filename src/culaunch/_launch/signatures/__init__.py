"""The parameters of kernels and their types."""
