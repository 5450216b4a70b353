"""Libraries: their functions and kernels by name, loaded on demand."""
