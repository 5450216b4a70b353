"""The parameters of a function: annotations, and arguments checked against them."""
