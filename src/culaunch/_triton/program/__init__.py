"""Runs a program with native Triton kernels."""
