"""A kernel's decorators, taken apart: they choose, and the launch is native."""
