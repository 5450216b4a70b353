"""Traced Python functions, and C++ text, to fused elementwise kernels."""
