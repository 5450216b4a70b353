"""Extracts the PTX that the emulated device executes from the pointer in cuLibraryLoadData."""

from __future__ import annotations

import ctypes
import functools

from culaunch._base.architectures import arch_fit
from culaunch._base.cuda import Result
from culaunch._base.elf import MAGIC
from culaunch._emulator.ops.builtins import BUILTINS
from culaunch._emulator.ptx.syntax import Symbol
from culaunch._emulator.ptx_image import PtxImage
from culaunch._errors import DriverError, ImageError
from culaunch._image import Image, embedded_ptx
from culaunch._image.sniff import FATBIN_MAGIC

# Functions of CUDA's device runtime, such as those that launch: the instruction reports that they
# are missing.
_RUNTIME = ("cuda", "__cuda", "cnp", "__cnp")


def load_ptx(address: int, arch: str) -> PtxImage:
    """Parse the PTX of the image at an address.

    Raises
    ------
    DriverError
        As :func:`ptx_at`.
    ImageError
        If it does not parse.
    """
    return _parse(ptx_at(address, arch))


def ptx_at(address: int, arch: str) -> str:
    """Return the PTX of the image at an address: the newest that the device can execute.

    Raise DriverError if there is no PTX, with code ``CUDA_ERROR_NO_BINARY_FOR_GPU``; or if there is
    no image, with code ``CUDA_ERROR_INVALID_IMAGE``.
    """
    # A fatbin may have PTX for several architectures. The driver takes the newest that fits, since
    # it knows most of the device; so is it here.
    texts = texts_at(address)
    if not texts:
        raise DriverError(
            "the image has machine code only, and the emulator executes PTX: compile with PTX, "
            f"as in arch='compute_{arch[3:]}'",
            Result.NO_BINARY_FOR_GPU,
        )
    targets = [_target(text) for text in texts]
    have = _number(arch)
    fitting = [i for i, one in enumerate(targets) if not arch_fit(one, have, only_ptx=True)[0]]
    if not fitting:
        raise DriverError(
            f"the image's PTX is for {', '.join(targets)}, and the emulated device is {arch}: "
            f"compile for compute_{arch[3:]}, or set CULAUNCH_EMULATOR_ARCH",
            Result.NO_BINARY_FOR_GPU,
        )
    return texts[max(fitting, key=lambda i: _number(targets[i]))]


def texts_at(address: int) -> tuple[str, ...]:
    """Return the PTX of the image at an address: of several architectures in a fatbin."""
    # Byte by byte: the image may be as short as an empty text, at the end of a page.
    magic = b""
    while len(magic) < len(MAGIC) and not magic.endswith(b"\0"):
        magic += ctypes.string_at(address + len(magic), 1)
    if magic == MAGIC:
        return ()
    if magic == FATBIN_MAGIC:
        # The header contains its own size, and the size of the data after it. The driver gets only
        # an address, so there is no other source of the size.
        header = ctypes.c_uint16.from_address(address + 6).value
        size = ctypes.c_uint64.from_address(address + 8).value
        return embedded_ptx(Image(ctypes.string_at(address, header + size)))
    text = ctypes.string_at(address).decode("utf-8", "replace")
    if ".version" not in text:
        raise DriverError("the image is neither PTX nor a cubin nor a fatbin", Result.INVALID_IMAGE)
    return (text,)


# Tests and notebooks load one image many times. The parsed text is never changed: `LoadedModule`
# holds the additions of a module (addresses, decoded code).
@functools.lru_cache(maxsize=64)
def _parse(text: str) -> PtxImage:
    image = PtxImage(text)
    _require_linked(image)
    return image


def _require_linked(image: PtxImage) -> None:
    """Refuse calls of functions that are elsewhere, as the compiler in NVIDIA's driver does."""
    functions, aliases = image.syntax.functions, image.syntax.aliases
    # A device function may be declared and not called, as headers do: only calls are refused.
    missing = {
        name
        for name, function in functions.items()
        if function.tokens is None
        and name not in aliases
        and name not in BUILTINS
        and not name.startswith(_RUNTIME)
    }
    if not missing:
        return
    for function in functions.values():
        for instruction in function.instructions:
            if instruction.name != "call":
                continue
            for operand in instruction.operands[:2]:
                if isinstance(operand, Symbol) and operand.name in missing:
                    raise ImageError(
                        f"{function.name} calls {operand.name!r}, which the image does not define: "
                        "it is relocatable code. Compile all of its parts with lto=True and link "
                        "them: culaunch.link(parts)",
                        source=f"PTX line {instruction.line}",
                    )


def _target(text: str) -> str:
    (arch,) = Image(text.encode()).arch
    return arch.replace("compute_", "sm_")


def _number(target: str) -> int:
    return int("".join(c for c in target if c.isdigit()))
