"""Finds the files that a compiler will read, from the text, without running the compiler."""
