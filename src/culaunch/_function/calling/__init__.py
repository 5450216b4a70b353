"""Functions as users call, specialize and explain them."""
