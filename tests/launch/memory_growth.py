"""Whether what is done over and over takes memory."""

from __future__ import annotations

import ctypes
import gc


def least_growth(run, count, measure, limit, rounds=6):
    """Return the least growth of a round of launches; a leak adds to every round.

    One round may grow for other reasons: the interpreter enlarges a table, or a sanitizer holds
    back freed memory until it has enough.
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
