"""Numbers of a body that stand for values of a call."""
