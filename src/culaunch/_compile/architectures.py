"""Which architectures to compile for: names, the current GPU's, and the launch layer's hook."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from culaunch._base.values import spell
from culaunch._errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable

_ARCH = re.compile(r"(sm|compute)_([1-9][0-9]{1,2})([af]?)")
_EXAMPLES = "such as 'sm_90', 'sm_90a' or 'compute_80'"

# Asked for the architectures of the driver in use; the launch layer sets it, because this package
# may not import that one. Returning () means "no device": the error then says to name an arch.
_current: Callable[[], Iterable[str]] | None = None


def set_current_device_arch(hook: Callable[[], Iterable[str]] | None) -> None:
    """Set how the default architectures are found.

    Parameters
    ----------
    hook : callable or None
        Returns the architectures to compile for when a call names none: ``("sm_90",)`` for a
        GPU, ``("compute_80",)`` for a driver that executes PTX, ``()`` when there is no device.
        ``None`` goes back to asking libcuda and the environment.
    """
    global _current  # noqa: PLW0603
    _current = hook


def resolve_arch(arch: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the architectures of one call, checked, without duplicates and in a fixed order."""
    if arch is None or arch == "native":
        return _current_device_arch()
    if not isinstance(arch, (str, Iterable)):
        raise TypeError(f"arch must be a str or an iterable of str (got {spell(arch)})")
    named = (arch,) if isinstance(arch, str) else tuple(arch)
    if not named:
        raise ValueError(f"arch is empty; name at least one architecture, {_EXAMPLES}")
    for name in named:
        if not isinstance(name, str):
            raise TypeError(f"arch must be a str or an iterable of str (got {spell(name)} in it)")
        if name == "native":
            continue
        if _ARCH.fullmatch(name) is None:
            raise ValueError(f"arch {name!r} is not an architecture; name one {_EXAMPLES}")
    found: set[str] = set()
    for name in named:
        found.update(_current_device_arch() if name == "native" else (name,))
    return tuple(sorted(found, key=_order))


def with_ptx(archs: tuple[str, ...]) -> tuple[str, ...]:
    """Add the PTX of each machine code where the emulator is chosen, which executes PTX alone."""
    if os.environ.get("CULAUNCH_DRIVER") != "emulator":
        return archs
    virtual = (f"compute_{arch_number(arch)}" for arch in archs)
    return tuple(sorted({*archs, *virtual}, key=_order))


def arch_number(arch: str) -> str:
    """Return the part after the underscore, ``"90a"`` of ``"sm_90a"``."""
    return arch.partition("_")[2]


def check_supported(archs: Iterable[str], supported: Iterable[int], compiler: str) -> None:
    """Raise unless a compiler knows every architecture; the message lists those that it knows."""
    known = tuple(supported)
    for arch in archs:
        match = _ARCH.fullmatch(arch)
        if match is not None and int(match[2]) not in known:
            listed = ", ".join(f"sm_{number}" for number in known)
            raise ValueError(f"arch {arch!r} is unknown to {compiler}, which supports {listed}")


def _order(arch: str) -> tuple[bool, int, str]:
    match = _ARCH.fullmatch(arch)
    assert match is not None
    return match[1] == "compute", int(match[2]), match[3]


def _current_device_arch() -> tuple[str, ...]:
    if _current is not None:
        found = tuple(_current())
    elif (driver := os.environ.get("CULAUNCH_DRIVER", "")) == "emulator":
        # The emulated driver executes PTX, so PTX is what it needs in the image.
        emulated = os.environ.get("CULAUNCH_EMULATOR_ARCH") or "sm_80"
        if _ARCH.fullmatch(emulated) is None:
            raise ValueError(f"CULAUNCH_EMULATOR_ARCH must be as 'sm_80' (got {emulated!r})")
        found = (f"compute_{arch_number(emulated)}",)
    elif driver not in ("", "cuda") and os.sep not in driver:
        raise ValueError(
            "CULAUNCH_DRIVER must be 'cuda', 'emulator' or the path of a library that exports the "
            f"CUDA driver API (got {driver!r})"
        )
    else:
        found = _ask_driver(driver if os.sep in driver else "libcuda.so.1")
    if not found:
        raise CompileError(
            "arch was not given and there is no GPU to take it from; name one, "
            "as in arch='sm_90', or several, as in arch=['sm_80', 'sm_90a', 'compute_90']; or "
            "choose the emulator, which runs kernels on the CPU: CULAUNCH_DRIVER=emulator, or "
            "culaunch.set_driver('emulator')"
        )
    return found


def _ask_driver(library: str) -> tuple[str, ...]:
    """Ask the driver for the current device's compute capability, without making a context."""
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        return ()
    device = ctypes.c_int(0)
    if cuda.cuInit(0) != 0:
        return ()
    # When no context is current, device 0 is what everyone's first call would use.
    if (
        cuda.cuCtxGetDevice(ctypes.byref(device)) != 0
        and cuda.cuDeviceGet(ctypes.byref(device), 0) != 0
    ):
        return ()
    numbers = []
    for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
        value = ctypes.c_int(0)
        if cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device) != 0:
            return ()
        numbers.append(value.value)
    return (f"sm_{numbers[0]}{numbers[1]}",)
