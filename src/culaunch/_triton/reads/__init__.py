"""What a function of a kernel's arguments depends on, found out without calling it."""
