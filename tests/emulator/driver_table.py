"""The emulated driver's table, called as C calls it."""

from __future__ import annotations

import ctypes
from typing import Any

from emulator_internals import Device, EmulatedDriver, Options

from culaunch._emulator.driver.c_types import LaunchAttribute, LaunchConfig

ADD = """
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 total = 7;
.visible .entry add(.param .u64 out, .param .u32 value) .maxntid 128, 1, 1 {
.reg .b64 %at; .reg .b32 %v, %i; .shared .align 4 .b8 box[64];
ld.param.u64 %at, [out]; ld.param.u32 %v, [value];
mov.u32 %i, %tid.x; mad.wide.u32 %at, %i, 4, %at; st.global.u32 [%at], %v; ret;
}
.visible .entry nothing() { ret; }
.visible .entry stop() { trap; }
"""


class Table:
    """Functions by name, of a device of their own; results by reference become return values."""

    def __init__(self, arch: str = "sm_80", **options: Any) -> None:
        self.device = Device(arch, Options(**options))
        self.driver = EmulatedDriver(self.device)
        self.functions = self.driver.table()
        self.context = self.out("cuDevicePrimaryCtxRetain", ctypes.c_void_p, 0)
        assert self("cuCtxPushCurrent", self.context) == 0

    def __call__(self, name: str, *arguments: Any) -> int:
        return int(self.functions[name](*arguments))

    def out(self, name: str, kind: Any, *arguments: Any) -> Any:
        """Call a function whose first argument is where the result goes."""
        result = kind()
        assert self(name, ctypes.byref(result), *arguments) == 0, self.text(1)
        return result.value

    def text(self, code: int) -> str:
        found = ctypes.c_void_p()
        assert self("cuGetErrorString", code, ctypes.byref(found)) == 0
        return ctypes.string_at(found.value or 0).decode()

    def name(self, code: int) -> str:
        found = ctypes.c_void_p()
        assert self("cuGetErrorName", code, ctypes.byref(found)) == 0
        return ctypes.string_at(found.value or 0).decode()

    def load_code(self, image: bytes) -> tuple[int, int]:
        """Load an image; give the code and the handle."""
        library = ctypes.c_void_p()
        buffer = ctypes.create_string_buffer(image)
        code = self(
            "cuLibraryLoadData", ctypes.byref(library), buffer, None, None, 0, None, None, 0
        )
        return code, library.value or 0

    def load(self, ptx: str = ADD) -> int:
        code, library = self.load_code(ptx.encode())
        assert code == 0, self.text(code)
        return library

    def kernel(self, library: int, name: str) -> int:
        return int(self.out("cuLibraryGetKernel", ctypes.c_void_p, library, name.encode()))

    def launch(
        self,
        kernel: int,
        *values: Any,
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (1, 1, 1),
        shared: int = 0,
        stream: int | None = None,
        attributes: tuple[tuple[int, bytes], ...] = (),
    ) -> int:
        """Launch with ctypes scalars; give the code."""
        listed = (LaunchAttribute * max(len(attributes), 1))()
        for place, (number, value) in zip(listed, attributes, strict=False):
            place.id = number
            ctypes.memmove(ctypes.addressof(place) + 8, value, len(value))
        config = LaunchConfig(
            (ctypes.c_uint * 3)(*grid),
            (ctypes.c_uint * 3)(*block),
            shared,
            stream,
            listed,
            len(attributes),
        )
        pointers = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        return self("cuLaunchKernelEx", ctypes.byref(config), kernel, pointers, None)
