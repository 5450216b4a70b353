"""Runs of a body that record a program: verbs, launches, results."""
