"""Triton kernels in the bodies of functions: which variant a call selects, as guards."""
