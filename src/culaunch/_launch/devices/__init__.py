"""The driver in use, its devices, their streams and events."""
