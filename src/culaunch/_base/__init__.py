"""Functions that every room may use: writing files, and checking who owns them."""
