"""Whether what is done over and over takes memory."""

from __future__ import annotations

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
