"""The instructions, by family."""
