"""Saved sets as C: a header and a source that depend only on the driver."""

from culaunch._triton.c_output.write import write_c

__all__ = ["write_c"]
