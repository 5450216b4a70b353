"""The decorators of a kernel, taken apart: they choose, and launch natively."""
