"""Finds the inputs of a function of a kernel's arguments, without calling it."""
