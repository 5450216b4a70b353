"""Whether what is done over and over takes memory."""

from __future__ import annotations

import ctypes
import gc


def least_growth(run, count, measure, limit, rounds=6):
    """Return the least that a round of launches adds; what leaks adds to every round.

    One round may grow by what does not come from the launches: a table of the interpreter that is
    just then made larger, or freed memory that a sanitizer holds back until it holds enough.
    """
    growth = []
    while len(growth) < rounds and (not growth or min(growth) >= limit):
        gc.collect()
        before = measure()
        run(count)
        growth.append(measure() - before)
    return min(growth)


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


class _Mallinfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    )  # fmt: skip


def allocated_bytes():
    """Return what glibc's malloc has given and not got back; a sanitizer's malloc says nothing."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):  # another C library, or one before 2021
        return 0
    mallinfo = libc.mallinfo2
    mallinfo.restype = _Mallinfo
    found = mallinfo()
    return found.uordblks + found.hblkhd
