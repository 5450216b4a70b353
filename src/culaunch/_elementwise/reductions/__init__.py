"""Reductions in traced functions: maps and reductions of the same data in one kernel."""
