"""Saved sets as C: a header and a source, which need the driver alone."""

from culaunch._triton.c_output.write import write_c

__all__ = ["write_c"]
