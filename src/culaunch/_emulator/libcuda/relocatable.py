"""Link relocatable PTX: the parts of a program of ``nvcc -rdc=true``, or of the driver's linker."""

from __future__ import annotations

import ctypes
import itertools
import re
from typing import TYPE_CHECKING

from culaunch._emulator.driver.image_bytes import ptx_at, texts_at

if TYPE_CHECKING:
    from collections.abc import Sequence

# nvcc adds the device runtime (libcudadevrt.a), whose functions are built in here.
_DEVICE_RUNTIME = "_cuda_device_runtime_cu_"
# Lines that a text has once. The numbers of source files would be those of another part.
_ONCE = re.compile(r"^\s*\.(?:version|target|address_size|file|loc)\b.*$", re.MULTILINE)


class Wrapper(ctypes.Structure):
    """``__fatBinC_Wrapper_t`` of ``fatbinary_section.h``, which nvcc's code has for an image."""

    MAGIC, RELOCATABLE = 0x466243B1, 2
    _fields_ = (
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("data", ctypes.c_void_p),
        ("parts", ctypes.POINTER(ctypes.c_void_p)),
    )

    def image(self, arch: str) -> int | ctypes.Array[ctypes.c_char]:
        """Return the address of the image, or the text that its parts are linked to."""
        data: int = self.data
        if self.version != self.RELOCATABLE:
            return data
        addresses = [address for address in itertools.takewhile(bool, self.parts) if address]
        programs = [
            address
            for address in addresses
            if (texts := texts_at(address)) and _DEVICE_RUNTIME not in texts[0]
        ]
        return link([ptx_at(address, arch) for address in programs]) if programs else data


def link(texts: Sequence[str]) -> ctypes.Array[ctypes.c_char]:
    """Return one null-terminated PTX text of texts that use each other's functions."""
    first, *rest = texts
    text = "\n".join((first, *(_ONCE.sub("", text) for text in rest)))
    return ctypes.create_string_buffer(text.encode())
