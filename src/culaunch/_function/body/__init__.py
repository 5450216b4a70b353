"""The body that runs in this thread: its state, its mistakes, its handlers of errors."""
