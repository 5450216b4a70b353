"""Operators of libraries that are written in Triton, their launches, and how both are compared."""
