"""The ways to launch a kernel, and their options."""
