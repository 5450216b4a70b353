"""Programs: the instructions that a body records, and their bytes."""
