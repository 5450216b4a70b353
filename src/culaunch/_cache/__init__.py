"""The directory that keeps what was compiled: where it is, who may use it, what it may hold."""
