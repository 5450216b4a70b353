"""One compiled form of a kernel: its facts, its parameters, its constants; loaded."""
