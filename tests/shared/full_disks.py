"""Disks without room, for a process that may mount none."""

import contextlib
import resource
import sys


@contextlib.contextmanager
def no_file_larger_than(size):
    """Fail each write past a size midway, with EFBIG, as a full disk or a quota does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    keeps, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # it would be cut short, too
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = keeps
