"""The driver's linker, for PTX."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._base.cuda import Result
from culaunch._emulator.driver.image_bytes import ptx_at
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.fault import INVALID_VALUE, NOT_SUPPORTED
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.libcuda.modules import ProgramModuleFunctions
from culaunch._emulator.libcuda.relocatable import link as join
from culaunch._errors import CulaunchError

_PTX, _FATBIN = 1, 2  # CUjitInputType


class _Link:
    """A link: the parts that were added, and the result, which lives as long."""

    def __init__(self) -> None:
        self.texts: list[str] = []
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
        if kind not in (_PTX, _FATBIN):
            raise Refusal(NOT_SUPPORTED, "the emulator links PTX and fatbins that have PTX")
        image = ctypes.create_string_buffer(data)
        try:
            found.texts.append(ptx_at(ctypes.addressof(image), self.device.arch))
        except CulaunchError as error:
            raise Refusal(getattr(error, "code", 0) or Result.INVALID_PTX, str(error)) from None

    @takes("p *p *z")
    def cuLinkComplete(self, link: int, out: Any, size: Any) -> None:
        found: _Link = self.get(link, _Link)
        if not found.texts:
            raise Refusal(INVALID_VALUE, "nothing was added to the link")
        found.image = join(found.texts)
        out[0], size[0] = ctypes.addressof(found.image), len(found.image)

    @takes("p")
    def cuLinkDestroy(self, link: int) -> None:
        self.get(link, _Link)
        self.remove(link)
