"""The version of this culaunch."""

__version__ = "0.1.0"
