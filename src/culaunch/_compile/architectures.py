"""Which architectures to compile for: names, and the current GPU's."""

from __future__ import annotations

import re
from collections.abc import Iterable

from culaunch._base.architectures import Architecture, architecture, emulated_arch
from culaunch._base.cuda import DeviceAttribute
from culaunch._base.driver_choice import driver_choice
from culaunch._base.values import spell
from culaunch._errors import CompileError

_LOOSELY = re.compile(r"(?:sm|compute|cc|arch)?[ _-]?([1-9][0-9]?)\.?([0-9])([af]?)", re.IGNORECASE)
_EXAMPLES = "such as 'sm_90', 'sm_90a' or 'compute_80'"
# Without a device to compile for, compile PTX: the emulator executes it, and drivers compile it for
# this and newer GPUs.
_ANYWHERE = ("compute_80",)


def resolve_arch(arch: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the architectures of one call, checked, without duplicates and in a fixed order."""
    if arch is None:
        return _current_device_arch() or _ANYWHERE
    if arch == "native":
        return _native()
    if not isinstance(arch, (str, Iterable)):
        raise TypeError(
            f"arch must be a str or an iterable of str (got {spell(arch)}){_meant(arch)}"
        )
    named = (arch,) if isinstance(arch, str) else tuple(arch)
    if len(named) == 2 and all(isinstance(one, int) for one in named):  # a compute capability
        meant = _meant(f"{named[0]}.{named[1]}")
        raise TypeError(f"arch must be a str or an iterable of str (got {spell(named)}){meant}")
    if not named:
        raise ValueError(f"arch is empty; name at least one architecture, {_EXAMPLES}")
    for name in named:
        if not isinstance(name, str):
            raise TypeError(
                f"arch must be a str or an iterable of str (got {spell(name)} in it){_meant(name)}"
            )
        if name == "native":
            continue
        if architecture(name) is None:
            raise ValueError(
                f"arch {name!r} is not an architecture; name one {_EXAMPLES}{_meant(name)}"
            )
    # Sort without duplicates: ["sm_90", "sm_80"] and ["sm_80", "sm_90"] are one request with one
    # key.
    found: set[str] = set()
    for name in named:
        found.update(_native() if name == "native" else (name,))
    return tuple(sorted(found, key=_order))


def with_ptx(archs: tuple[str, ...]) -> tuple[str, ...]:
    """Add PTX for each machine code if the driver is the emulator, which executes only PTX."""
    if driver_choice() != "emulator":
        return archs
    virtual = (f"compute_{arch_number(arch)}" for arch in archs)
    return tuple(sorted({*archs, *virtual}, key=_order))


def arch_number(arch: str) -> str:
    """Return the part after the underscore, ``"90a"`` of ``"sm_90a"``."""
    return arch.partition("_")[2]


def check_supported(archs: Iterable[str], supported: Iterable[int], compiler: str) -> None:
    """Raise unless a compiler supports all architectures. The message lists the supported ones."""
    known = tuple(supported)
    for arch in archs:
        found = architecture(arch)
        if found is not None and found.number not in known:
            listed = ", ".join(f"sm_{number}" for number in known)
            raise ValueError(f"arch {arch!r} is unknown to {compiler}, which supports {listed}")


def _meant(arch: object) -> str:
    """Suggest the architecture for 90, "90", "sm90", "9.0" or "SM_90a"."""
    if isinstance(arch, int):  # a very large one cannot be written
        arch = f"{arch}" if 0 < arch < 1000 else ""
    match = _LOOSELY.fullmatch(str(arch) if isinstance(arch, (str, float)) else "")
    return f": did you mean 'sm_{match[1]}{match[2]}{match[3].lower()}'?" if match else ""


def _order(arch: str) -> Architecture:
    found = architecture(arch)
    assert found is not None
    return found


def _native() -> tuple[str, ...]:
    found = _current_device_arch()
    if not found:
        raise CompileError(
            "there is no GPU to take arch from; name one, as in arch='sm_90', or several, as in "
            "arch=['sm_80', 'sm_90a', 'compute_90']. Compiling without arch makes PTX, which the "
            "emulator and newer GPUs take"
        )
    return found


def _current_device_arch() -> tuple[str, ...]:
    """Return the architectures that the driver in use accepts; none without a device."""
    driver = driver_choice()
    if driver == "emulator":
        # The emulated driver executes PTX, so the image needs PTX.
        return (f"compute_{arch_number(emulated_arch())}",)
    return _ask_driver("libcuda.so.1" if driver == "cuda" else driver)


def _ask_driver(library: str) -> tuple[str, ...]:
    """Ask the driver for the current device's compute capability, without making a context."""
    import ctypes

    try:
        cuda = ctypes.CDLL(library)
    # A missing driver is not an error here: the machine compiles for others.
    except OSError:
        return ()
    device = ctypes.c_int(0)
    if cuda.cuInit(0) != 0:
        return ()
    # Without a current context, every first call uses device 0.
    if (
        cuda.cuCtxGetDevice(ctypes.byref(device)) != 0
        and cuda.cuDeviceGet(ctypes.byref(device), 0) != 0
    ):
        return ()
    numbers = []
    for attribute in (
        DeviceAttribute.COMPUTE_CAPABILITY_MAJOR,
        DeviceAttribute.COMPUTE_CAPABILITY_MINOR,
    ):
        value = ctypes.c_int(0)
        if cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device) != 0:
            return ()
        numbers.append(value.value)
    return (f"sm_{numbers[0]}{numbers[1]}",)
