"""Which architectures a device runs, and which of several is nearest to it."""

from __future__ import annotations

import re

ARCH = re.compile(r"(sm|compute)_(\d{1,2})(\d)([af]?)")


def arch_fit(arch: str, capability: int, *, only_ptx: bool) -> tuple[str, int]:
    """Say why code for an architecture does not run on a device; and how near it is.

    Parameters
    ----------
    arch : str
        ``"sm_90a"``, or ``"compute_80"`` for PTX.
    capability : int
        10 major + minor of the device.
    only_ptx : bool
        Whether the driver takes nothing but PTX (the emulator): ``sm_80`` is taken as the target
        of PTX then.

    Returns
    -------
    str
        Empty if it runs.
    int
        The greater, the nearer.
    """
    match = ARCH.fullmatch(arch)
    if match is None:
        return f"its architecture {arch} is unknown", 0
    major, minor, suffix = int(match[2]), int(match[3]), match[4]
    own = 10 * major + minor
    have = f"the device is sm_{capability}"
    if suffix == "a":
        return ("" if own == capability else f"it runs only on {arch}, but {have}"), own
    if suffix == "f" or (match[1] == "sm" and not only_ptx):
        fits = capability // 10 == major and capability % 10 >= minor
        return ("" if fits else f"it is for {arch}, but {have}"), own
    return ("" if capability >= own else f"it needs {arch} or newer, but {have}"), own - 1000
