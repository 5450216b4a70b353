"""The parameters of a function: annotations, and checks of arguments."""
