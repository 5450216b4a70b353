"""The parts of Triton that culaunch reads, and replacements for some of them."""
