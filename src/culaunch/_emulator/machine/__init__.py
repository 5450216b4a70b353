"""Run decoded code over many threads at once: groups, scheduling, barriers, chunks."""
