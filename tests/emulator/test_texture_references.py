"""References of textures and surfaces in a module, which a program binds with the driver's API."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from emulator_internals import Device, ProgramDriver, Result, prototype, words_of

from culaunch._emulator.libcuda.names import method_name

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .global .texref tex;
.visible .global .surfref surf;
.visible .global .u64 number;

.visible .entry read_1d(.param .u64 out) {
  .reg .f32 %f<4>; .reg .b32 %c; .reg .b64 %o;
  ld.param.u64 %o, [out]; mov.u32 %c, %tid.x; mad.wide.u32 %o, %c, 4, %o;
  tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [tex, {%c}];
  st.global.f32 [%o], %f0; ret;
}
.visible .entry read_2d(.param .u64 out) {
  .reg .f32 %f<4>, %x, %y; .reg .b32 %c; .reg .b64 %o;
  ld.param.u64 %o, [out]; mov.u32 %c, %tid.x; mad.wide.u32 %o, %c, 4, %o;
  cvt.rn.f32.u32 %x, %c; mul.f32 %x, %x, 0f3E000000; mov.f32 %y, 0f3F400000;
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tex, {%x, %y}];
  st.global.f32 [%o], %f0; ret;
}
.visible .entry write(.param .u64 out) {
  .reg .b32 %c, %y, %v; .reg .b64 %o;
  ld.param.u64 %o, [out]; mov.u32 %c, %tid.x; mad.wide.u32 %o, %c, 4, %o;
  suq.width.b32 %v, [surf]; st.global.b32 [%o], %v;
  shl.b32 %v, %c, 2; mov.u32 %y, 0; sust.b.2d.b32.trap [surf, {%v, %y}], %c; ret;
}
"""
FLOAT, UINT32 = 0x20, 3
NORMALIZED, LINEAR, CLAMP, BORDER = 2, 1, 1, 3
ROWS = np.arange(128, dtype="f4").reshape(4, 32)  # a row has 128 bytes


class Api:
    """Functions of the driver API by their exported names, of the emulator or of libcuda."""

    def __init__(self, driver: ProgramDriver | None) -> None:
        self._driver = driver
        self._library = None if driver else ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxPushCurrent_v2", context)
        self.module = self.made("cuModuleLoadData", PTX)

    def code(self, name: str, *arguments: Any) -> int:
        if self._driver is None:
            code: int = getattr(self._library, name)(*arguments)
            return code
        method = getattr(self._driver, method_name(self._driver, name) or "")
        function = prototype(words_of(method))(self._driver.find(name.encode()))
        given = zip(function.argtypes, arguments, strict=True)
        return int(function(*(_as(kind, one) for kind, one in given)))

    def __call__(self, name: str, *arguments: Any) -> None:
        assert (name, self.code(name, *arguments)) == (name, 0)

    def made(self, name: str, *arguments: Any) -> Any:
        """Return what a function writes to its first argument."""
        out = ctypes.c_void_p()
        self(name, ctypes.byref(out), *arguments)
        return out

    def reference(self, name: bytes = b"tex", kind: str = "Tex") -> Any:
        return self.made(f"cuModuleGet{kind}Ref", self.module, name)

    def memory(self, x: np.ndarray) -> Any:
        at = self.made("cuMemAlloc_v2", ctypes.c_size_t(x.nbytes))
        self("cuMemcpyHtoD_v2", at, ctypes.c_void_p(x.ctypes.data), ctypes.c_size_t(x.nbytes))
        return at

    def array(self, x: np.ndarray, format_: int, flags: int = 0) -> Any:
        """Make an array of one row; x with two axes makes an array of two."""
        height, width = x.shape if x.ndim == 2 else (0, x.size)
        descriptor = (ctypes.c_size_t * 5)(width, height, 0, format_ | 1 << 32, flags)
        array = self.made("cuArray3DCreate_v2", ctypes.byref(descriptor))
        place, size = ctypes.c_void_p(x.ctypes.data), ctypes.c_size_t(x.nbytes)
        self("cuMemcpyHtoA_v2", array, ctypes.c_size_t(0), place, size)
        return array

    def launched(self, kernel: bytes, threads: int) -> np.ndarray:
        out = np.zeros(threads, "f4")
        memory = self.memory(out)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
        function, none = self.made("cuModuleGetFunction", self.module, kernel), ctypes.c_void_p()
        self("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, none, parameters, none)
        place, size = ctypes.c_void_p(out.ctypes.data), ctypes.c_size_t(out.nbytes)
        self("cuMemcpyDtoH_v2", place, memory, size)
        return out


def _as(kind: Any, given: Any) -> Any:
    """Return an argument for a parameter of the emulator's function."""
    if isinstance(given, ctypes.Array) or hasattr(given, "_obj"):
        return ctypes.cast(given, kind)
    return getattr(given, "value", given)


@pytest.fixture(params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def api(request: pytest.FixtureRequest) -> Api:
    return Api(ProgramDriver(Device()) if request.param == "emulator" else None)


def test_linear_memory(api: Api) -> None:
    memory, tex, size = api.memory(ROWS), api.reference(), ctypes.c_size_t()
    api("cuTexRefSetFormat", tex, FLOAT, 1)
    api("cuTexRefSetAddress_v2", ctypes.byref(size), tex, memory, ctypes.c_size_t(64))
    assert size.value == 0
    assert api.launched(b"read_1d", 32).tolist() == [*range(16), *[0] * 16]
    # Another binding replaces it.
    later = ctypes.c_void_p((memory.value or 0) + 256)
    api("cuTexRefSetAddress_v2", ctypes.byref(size), tex, later, ctypes.c_size_t(128))
    shift = size.value // 4
    got = api.launched(b"read_1d", 32)
    assert got[shift:].tolist() == [64 - shift + i for i in range(shift, 32)]


def test_rows_with_a_linear_filter(api: Api) -> None:
    memory, tex = api.memory(ROWS), api.reference()
    descriptor = (ctypes.c_size_t * 3)(8, 4, FLOAT | 1 << 32)
    for axis in (0, 1):
        api("cuTexRefSetAddressMode", tex, axis, CLAMP)
    pitch = ctypes.c_size_t(ROWS.strides[0])
    api("cuTexRefSetAddress2D_v3", tex, ctypes.byref(descriptor), memory, pitch)
    api("cuTexRefSetFlags", tex, NORMALIZED)
    assert api.launched(b"read_2d", 8).tolist() == ROWS[3, :8].tolist()
    api("cuTexRefSetFilterMode", tex, LINEAR)
    expected = (ROWS[2, 0] + ROWS[3, 0]) / 2 + np.maximum(np.arange(8) - 0.5, 0)
    assert api.launched(b"read_2d", 8).tolist() == expected.tolist()


def test_arrays(api: Api) -> None:
    x = np.arange(8, dtype="f4")[None] + 40
    tex = api.reference()
    api("cuTexRefSetFlags", tex, NORMALIZED)
    api("cuTexRefSetArray", tex, api.array(x, FLOAT), 1)
    assert api.launched(b"read_2d", 8).tolist() == x[0].tolist()


def test_levels_and_a_border(api: Api) -> None:
    descriptor = (ctypes.c_size_t * 5)(8, 4, 0, FLOAT | 1 << 32, 0)
    levels = api.made("cuMipmappedArrayCreate", ctypes.byref(descriptor), 2)
    tex, number = api.reference(), ctypes.c_float
    api("cuTexRefSetFlags", tex, NORMALIZED)
    api("cuTexRefSetMipmapFilterMode", tex, 0)
    api("cuTexRefSetMipmapLevelBias", tex, number(0.5))
    api("cuTexRefSetMipmapLevelClamp", tex, number(0), number(1))
    api("cuTexRefSetMaxAnisotropy", tex, 1)
    api("cuTexRefSetBorderColor", tex, (number * 4)(5, 6, 7, 8))
    for axis in range(3):
        api("cuTexRefSetAddressMode", tex, axis, BORDER)
    api("cuTexRefSetMipmappedArray", tex, levels, 1)
    assert api.launched(b"read_2d", 12)[8:].tolist() == [5] * 4


def test_a_surface_reference(api: Api) -> None:
    surface = api.array(np.full((1, 8), 9, "u4"), UINT32, flags=2)
    api("cuSurfRefSetArray", api.reference(b"surf", "Surf"), surface, 0)
    assert api.launched(b"write", 8).view("u4").tolist() == [8] * 8
    got = np.zeros(8, "u4")
    place, size = ctypes.c_void_p(got.ctypes.data), ctypes.c_size_t(got.nbytes)
    api("cuMemcpyAtoH_v2", place, surface, ctypes.c_size_t(0), size)
    assert got.tolist() == list(range(8))


def test_a_name_that_is_no_reference(api: Api) -> None:
    out = ctypes.c_void_p()
    for name in (b"other", b"read_1d"):
        code = api.code("cuModuleGetTexRef", ctypes.byref(out), api.module, name)
        assert code == Result.NOT_FOUND


def test_what_the_emulator_refuses() -> None:
    api = Api(ProgramDriver(Device()))
    out, tex, size = ctypes.c_void_p(), api.reference(), ctypes.c_size_t(64)
    invalid = Result.INVALID_VALUE
    assert api.code("cuModuleGetTexRef", ctypes.byref(out), api.module, b"number") == (
        Result.NOT_FOUND
    )
    assert api.code("cuTexRefSetAddressMode", tex, 3, CLAMP) == invalid
    api("cuTexRefSetFormat", tex, FLOAT, 1)
    later = ctypes.c_void_p((api.memory(ROWS).value or 0) + 4)
    assert api.code("cuTexRefSetAddress_v2", None, tex, later, size) == invalid
    surface = api.array(np.zeros((1, 8), "u4"), UINT32)
    assert api.code("cuSurfRefSetArray", tex, surface, 0) == invalid
    # Memory is bound to no reference yet.
    memory = api.memory(np.zeros(8, "f4"))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    read, none = api.made("cuModuleGetFunction", api.module, b"read_1d"), ctypes.c_void_p()
    code = api.code("cuLaunchKernel", read, 1, 1, 1, 8, 1, 1, 0, none, parameters, none)
    assert code == Result.ILLEGAL_ADDRESS
