"""The body that runs in this thread: its state, its errors, its exception handlers."""
