"""Decode a function: blocks of operations, and which registers they need."""
