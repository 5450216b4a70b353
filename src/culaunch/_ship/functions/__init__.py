"""A library's functions: their programs, selected, decoded and run."""
