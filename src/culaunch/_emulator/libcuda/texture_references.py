"""Texture and surface references of a module: variables that hold the handle of an object.

They are deprecated, and compilers no longer make them. The driver binds memory to them.
"""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.driver.texture_types import ResourceDescriptor, TextureDescriptor
from culaunch._emulator.fault import INVALID_VALUE, NOT_FOUND
from culaunch._emulator.libcuda.arrays import ArrayFunctions
from culaunch._emulator.libcuda.c_function import takes

_ALIGNMENT = 512  # of linear memory


class _Reference:
    """A reference, and how it reads the memory that is bound to it."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.unit = 0
        self.resource, self.texture = ResourceDescriptor(), TextureDescriptor()


class TextureReferenceFunctions(ArrayFunctions):
    """The functions ``cuTexRefSet...`` and ``cuSurfRefSetArray``."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._references: dict[int, int] = {}

    @takes("*p p s")
    def cuModuleGetTexRef(self, out: Any, module: int, name: bytes) -> None:
        loaded, wanted = self._library(module), name.decode()
        variable = loaded.image.globals.get(wanted)
        if variable is None or not variable.is_reference:
            raise Refusal(NOT_FOUND, f"the image has no reference {wanted!r}")
        place = loaded.address(wanted)
        if place not in self._references:
            self._references[place] = self.add(_Reference(place))
        out[0] = self._references[place]

    @takes("*p p s")
    def cuModuleGetSurfRef(self, out: Any, module: int, name: bytes) -> None:
        self.cuModuleGetTexRef(out, module, name)

    @takes("p p u")
    def cuTexRefSetArray(self, reference: int, array: int, flags: int) -> None:
        self._bind(reference, ResourceDescriptor.ARRAY, handle=array)

    @takes("p p u")
    def cuTexRefSetMipmappedArray(self, reference: int, array: int, flags: int) -> None:
        self._bind(reference, ResourceDescriptor.MIPMAP, handle=array)

    @takes("*z p q z")
    def cuTexRefSetAddress(self, offset: Any, reference: int, address: int, size: int) -> None:
        beyond = address % _ALIGNMENT
        if offset:
            offset[0] = beyond
        elif beyond:
            raise Refusal(INVALID_VALUE, f"{address:#x} is not a multiple of {_ALIGNMENT}")
        linear = {"address": address - beyond, "width": size + beyond}
        self._bind(reference, ResourceDescriptor.LINEAR, **linear)

    @takes("p p q z")
    def cuTexRefSetAddress2D(
        self, reference: int, descriptor: int, address: int, pitch: int
    ) -> None:
        width, height = (ctypes.c_size_t * 2).from_address(descriptor)
        format_, channels = (ctypes.c_uint * 2).from_address(descriptor + 16)
        linear = {"address": address, "width": width, "height": height, "pitch": pitch}
        linear.update(format=format_, channels=channels)
        self._bind(reference, ResourceDescriptor.PITCH_2D, **linear)

    @takes("p i i")
    def cuTexRefSetFormat(self, reference: int, format_: int, channels: int) -> None:
        linear = self.get(reference, _Reference).resource.resource.linear
        linear.format, linear.channels = format_, channels

    @takes("p i i")
    def cuTexRefSetAddressMode(self, reference: int, axis: int, mode: int) -> None:
        if axis not in range(3):
            raise Refusal(INVALID_VALUE, f"a texture has the axes 0 to 2 (got {axis})")
        addresses = [*self.get(reference, _Reference).texture.addresses]
        addresses[axis] = mode
        self._set(reference, addresses=tuple(addresses))

    @takes("p i")
    def cuTexRefSetFilterMode(self, reference: int, mode: int) -> None:
        self._set(reference, filter=mode)

    @takes("p i")
    def cuTexRefSetMipmapFilterMode(self, reference: int, mode: int) -> None:
        self._set(reference, mipmap_filter=mode)

    @takes("p f")
    def cuTexRefSetMipmapLevelBias(self, reference: int, bias: float) -> None:
        self._set(reference, bias=bias)

    @takes("p f f")
    def cuTexRefSetMipmapLevelClamp(self, reference: int, least: float, most: float) -> None:
        self._set(reference, least=least, most=most)

    @takes("p u")
    def cuTexRefSetMaxAnisotropy(self, reference: int, most: int) -> None:
        self._set(reference, max_anisotropy=most)

    @takes("p *f")
    def cuTexRefSetBorderColor(self, reference: int, color: Any) -> None:
        self._set(reference, border=tuple(color[:4]))

    @takes("p u")
    def cuTexRefSetFlags(self, reference: int, flags: int) -> None:
        self._set(reference, flags=flags)

    @takes("p p u")
    def cuSurfRefSetArray(self, reference: int, array: int, flags: int) -> None:
        self._bind(reference, ResourceDescriptor.ARRAY, self.cuSurfObjectCreate, handle=array)

    def _bind(
        self, reference: int, kind: int, create: Any = None, *, handle: int = 0, **linear: Any
    ) -> None:
        """Bind memory to a reference."""
        known = self.get(reference, _Reference)
        known.resource.type = kind
        if handle:
            known.resource.resource.handle = handle
        for name, value in linear.items():
            setattr(known.resource.resource.linear, name, value)
        self._make(known, create)

    def _set(self, reference: int, **members: Any) -> None:
        known = self.get(reference, _Reference)
        for name, value in members.items():
            setattr(known.texture, name, value)
        if known.unit:
            self._make(known, None)

    def _make(self, known: _Reference, create: Any) -> None:
        """Create the object that the variable names."""
        out, resource = [0], ctypes.addressof(known.resource)
        if create is None:
            self.cuTexObjectCreate(out, resource, ctypes.addressof(known.texture), 0)
        else:
            create(out, resource)
        if known.unit:
            self._remove_unit(known.unit, object)
        known.unit = out[0]
        ctypes.c_ulonglong.from_address(known.place).value = known.unit
