"""The compiled engine: kernels as C, for what runs often."""
