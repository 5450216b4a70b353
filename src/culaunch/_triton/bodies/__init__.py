"""Triton kernels in functions' bodies: guards on the variant that a call selects."""
