"""The driver's linker, for one image: the emulator executes its PTX as it is."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.fault import INVALID_VALUE, NOT_SUPPORTED
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.libcuda.modules import ProgramModuleFunctions

_PTX, _FATBIN = 1, 2  # CUjitInputType


class _Link:
    """A link: the image that was added."""

    def __init__(self) -> None:
        self.image: ctypes.Array[ctypes.c_char] | None = None


class LinkFunctions(ProgramModuleFunctions):
    """The functions ``cuLink...``."""

    @takes("u *i *p *p")
    def cuLinkCreate(self, count: int, options: Any, values: Any, out: Any) -> None:
        self.require_context()
        out[0] = self.add(_Link())

    @takes("p i p z s u *i *p")
    def cuLinkAddData(self, link: int, kind: int, data: int, size: int, *rest: Any) -> None:
        self._take(link, kind, ctypes.string_at(data, size))

    @takes("p i s u *i *p")
    def cuLinkAddFile(self, link: int, kind: int, file: bytes, *rest: Any) -> None:
        self._take(link, kind, self._read(file))

    def _take(self, link: int, kind: int, data: bytes) -> None:
        found: _Link = self.get(link, _Link)
        if found.image is not None or kind not in (_PTX, _FATBIN):
            raise Refusal(NOT_SUPPORTED, "the emulator links one image, which has PTX")
        found.image = ctypes.create_string_buffer(data)

    @takes("p *p *z")
    def cuLinkComplete(self, link: int, out: Any, size: Any) -> None:
        image = self.get(link, _Link).image
        if image is None:
            raise Refusal(INVALID_VALUE, "nothing was added to the link")
        out[0], size[0] = ctypes.addressof(image), len(image)

    @takes("p")
    def cuLinkDestroy(self, link: int) -> None:
        self.get(link, _Link)
        self.remove(link)
