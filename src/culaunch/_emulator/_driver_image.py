"""From what cuLibraryLoadData gets, a pointer, to the PTX that the emulated device executes."""

from __future__ import annotations

import ctypes
import functools

from culaunch._emulator._module import PtxModule
from culaunch._errors import DriverError
from culaunch._image import Image, embedded_ptx

_ELF = b"\x7fELF"
_FATBIN = b"\x50\xed\x55\xba"
_NO_BINARY = 209


def load_ptx(address: int, arch: str) -> PtxModule:
    """Parse the PTX of the image at an address: the newest that the device can execute.

    Raises
    ------
    DriverError
        If there is none, with code ``CUDA_ERROR_NO_BINARY_FOR_GPU``.
    ImageError
        If it does not parse.
    """
    magic = ctypes.string_at(address, 4)
    texts: tuple[str, ...]
    if magic == _ELF:
        texts = ()
    elif magic == _FATBIN:
        header = ctypes.c_uint16.from_address(address + 6).value
        size = ctypes.c_uint64.from_address(address + 8).value
        texts = embedded_ptx(Image(ctypes.string_at(address, header + size)))
    else:
        texts = (ctypes.string_at(address).decode("utf-8", "replace"),)
    if not texts:
        raise DriverError(
            "the image has machine code only, and the emulator executes PTX: compile with PTX, "
            f"as in arch='compute_{arch[3:]}'",
            _NO_BINARY,
        )
    modules = [_parse(text) for text in texts]
    fitting = [module for module in modules if _number(module.target) <= _number(arch)]
    if not fitting:
        found = ", ".join(module.target for module in modules)
        raise DriverError(
            f"the image's PTX is for {found}, and the emulated device is {arch}: compile for "
            f"compute_{arch[3:]}, or set CULAUNCH_EMULATOR_ARCH",
            _NO_BINARY,
        )
    return max(fitting, key=lambda module: _number(module.target))


@functools.lru_cache(maxsize=64)
def _parse(text: str) -> PtxModule:
    return PtxModule(text)


def _number(target: str) -> int:
    return int("".join(c for c in target if c.isdigit()))
