"""Small kernels with one bug each, and the programs that show who finds them."""
