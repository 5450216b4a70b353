"""The parts of Triton that are read, and replacements for some of them."""
