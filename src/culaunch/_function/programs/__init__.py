"""Programs: what a body records, instruction by instruction, and their bytes."""
