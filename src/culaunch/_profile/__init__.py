"""Profiles: the launches of a block of code, their times, and what limits them."""
