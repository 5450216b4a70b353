"""Architectures: their names and their order, and the devices that run them."""

from __future__ import annotations

import functools
import os
import re
from typing import NamedTuple

_NAME = re.compile(r"(sm|compute)_([1-9][0-9]{1,2})([af]?)")


class Architecture(NamedTuple):
    """A target of compilers. ``culaunch/jit/toolkit/architectures.h`` has the same for C++.

    They are sorted as in a fatbin: machine code first, then PTX, both from old to new.
    """

    is_virtual: bool
    """Whether the code is PTX."""
    number: int
    """10 major + minor of a compute capability."""
    suffix: str
    """``"a"``, ``"f"`` or ``""``."""

    @property
    def rule(self) -> str:
        """Which devices run it: ``"A"``, only its own, ``"M"`` or ``"P"``.

        M: also newer ones of its major version. P: all newer ones.
        """
        if self.suffix == "a":
            return "A"
        return "P" if self.is_virtual and not self.suffix else "M"


# Cached, because the variants of a set repeat the same few names.
@functools.lru_cache(maxsize=256)
def architecture(name: str) -> Architecture | None:
    """Return the architecture ``"sm_90a"`` or ``"compute_80"``; None for another name."""
    match = _NAME.fullmatch(name)
    return match and Architecture(match[1] == "compute", int(match[2]), match[3])


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
    found = architecture(arch)
    if found is None:
        return f"its architecture {arch} is unknown", 0
    if only_ptx:
        found = found._replace(is_virtual=True)
    own, have = found.number, f"the device is sm_{capability}"
    if found.rule == "A":
        return ("" if own == capability else f"it runs only on {arch}, but {have}"), own
    if found.rule == "M":
        fits = capability // 10 == own // 10 and capability >= own
        return ("" if fits else f"it is for {arch}, but {have}"), own
    return ("" if capability >= own else f"it needs {arch} or newer, but {have}"), own - 1000


def emulated_arch() -> str:
    """Return the architecture of the emulated device; raise ValueError if it is not ``sm_...``."""
    arch = os.environ.get("CULAUNCH_EMULATOR_ARCH") or "sm_80"
    found = architecture(arch)
    if found is None or found.is_virtual or found.suffix:
        raise ValueError(
            f"CULAUNCH_EMULATOR_ARCH must be an architecture such as 'sm_80' (got {arch!r})"
        )
    return arch
