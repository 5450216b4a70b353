"""Selects one of several programs for the same arguments, by the device of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.architectures import arch_fit
from culaunch._errors import KernelNotFoundError
from culaunch._launch.devices.driver import capability_of, current_driver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._core import Driver
    from culaunch._ship.manifest.entry import SavedKind


def choose(name: str, programs: Sequence[SavedKind], device: int | None) -> SavedKind:
    """Return the program for a device.

    Parameters
    ----------
    name : str
        The function's.
    programs : sequence of SavedKind
        For the same arguments; the first one among equals.
    device : int or None
        None: the current one.

    Raises
    ------
    KernelNotFoundError
        If none of them runs there.
    """
    if len(programs) == 1:
        return programs[0]
    driver = current_driver()
    capability = _capability(driver, driver.current_device() if device is None else device)
    best: tuple[int, SavedKind] | None = None
    for one in programs:
        near = nearness(one.archs or (), capability, only_ptx=driver.name == "emulator")
        # Only a better program replaces the best one, so the first in the file wins among equals.
        if near is not None and (best is None or near > best[0]):
            best = (near, one)
    if best is None:
        have = "; ".join(_shown(one.archs or ()) for one in programs)
        raise KernelNotFoundError(
            f"{name} has no program for sm_{capability}: for these arguments it has programs for "
            f"{have}. Save it on a device of this kind, and merge the libraries with "
            "culaunch.ship.save"
        )
    return best[1]


def nearness(archs: tuple[tuple[str, ...], ...], capability: int, *, only_ptx: bool) -> int | None:
    """Return how well a program's images suit a device; None if one does not run."""
    least = 1000
    for image in archs:
        # The emulator uses only the PTX of an image.
        usable = [one for one in image if one.startswith("compute") or not only_ptx]
        found = [arch_fit(one, capability, only_ptx=only_ptx) for one in usable]
        near = [nearness for reason, nearness in found if not reason]
        if not near:
            return None
        # A program is as good as its worst image, each taken in its best form.
        least = min(least, max(near))
    return least


def capability_that_decides(saved: SavedKind, device: int | None) -> int | None:
    """Return the compute capability of a program, if the devices here differ in it."""
    if saved.archs is None:
        return None
    driver = current_driver()
    own = _capability(driver, driver.current_device() if device is None else device)
    every = {_capability(driver, ordinal) for ordinal in range(driver.device_count)}
    # If all devices are alike, the program needs no device guard, which would cost every call.
    return own if len(every) > 1 else None


def _capability(driver: Driver, device: int) -> int:
    major, minor = capability_of(driver, device)
    return 10 * major + minor


def _shown(archs: tuple[tuple[str, ...], ...]) -> str:
    return " and ".join(dict.fromkeys(", ".join(image) for image in archs)) or "any device"
