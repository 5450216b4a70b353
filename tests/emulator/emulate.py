"""Launch PTX on an emulated device from NumPy arrays."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from emulator_internals import Device, LoadedModule, Options, PtxImage


@functools.lru_cache(maxsize=64)
def image_of(ptx: str) -> PtxImage:
    return PtxImage(ptx)


def pack(module: PtxImage, kernel: str, arguments: tuple[Any, ...]) -> bytes:
    """Lay arguments out as the kernel's parameters are."""
    info = module.kernel(kernel)
    assert len(arguments) == len(info.params), (len(arguments), info.params)
    out = bytearray(info.param_bytes)
    for param, value in zip(info.params, arguments, strict=True):
        if isinstance(value, np.ndarray):
            raw = value.ctypes.data.to_bytes(8, "little")
        elif isinstance(value, bytes):
            raw = value
        elif isinstance(value, int):
            raw = value.to_bytes(param.size, "little", signed=value < 0)
        else:
            raw = value.tobytes()
        assert len(raw) == param.size, (param, value)
        out[param.offset : param.offset + param.size] = raw
    return bytes(out)


def launch(
    ptx: str,
    kernel: str,
    *arguments: Any,
    grid: tuple[int, ...] = (1,),
    block: tuple[int, ...] = (32,),
    shared: int = 0,
    cluster: tuple[int, ...] = (1,),
    cooperative: bool = False,
    device: Device | None = None,
    module: LoadedModule | None = None,
    memory: tuple[np.ndarray, ...] = (),
    **options: Any,
) -> LoadedModule:
    """Run a kernel once on a new device.

    Arrays among the arguments and in `memory` are the device's memory.
    """
    device = device or Device(options=Options(**options))
    module = module or device.load(image_of(ptx))
    device.launch(
        module,
        kernel,
        pack(module.image, kernel, arguments),
        grid,
        block,
        shared,
        cluster=cluster,
        cooperative=cooperative,
        ranges=[
            (a.ctypes.data, a.nbytes) for a in (*arguments, *memory) if isinstance(a, np.ndarray)
        ],
    )
    return module


_REGISTERS = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}


def evaluate(code: str, *inputs: Any, out: str = "u4", count: int = 0, **how: Any) -> np.ndarray:
    """Run PTX once for each element of `inputs`: it reads ``%a``, ``%b``, ... and writes ``%out``.

    Registers ``%p0`` to ``%p7``, ``%r0`` to ``%r15``, ``%h0`` to ``%h7`` and ``%d0`` to ``%d7``
    are free for use. So are 256 bytes of shared memory, ``box``, and ``%i``, the thread.
    """
    arrays = [np.ascontiguousarray(x).reshape(-1) for x in inputs]
    n = count or max(len(x) for x in arrays)
    arrays = [np.ascontiguousarray(np.broadcast_to(x, (n,))) for x in arrays]
    result = np.zeros(n, out)
    params, loads, declarations = [], [], []
    for name, x in zip("abcdefgh", arrays, strict=False):
        size = x.dtype.itemsize
        params.append(f".param .u64 in_{name}")
        declarations.append(f".reg .{_REGISTERS[size]} %{name};")
        loads.append(
            f"ld.param.u64 %at, [in_{name}]; mad.wide.u32 %at, %i, {size}, %at; "
            f"ld.global.b{8 * size} %{name}, [%at];"
        )
    size = result.dtype.itemsize
    lines = [
        ".version 8.7",
        ".target sm_80",
        ".address_size 64",
        f".visible .entry k({', '.join([*params, '.param .u64 result, .param .u32 n'])}) {{",
        ".reg .pred %p<8>; .reg .b32 %r<16>; .reg .b16 %h<8>; .reg .b64 %d<8>;",
        ".reg .b64 %at; .reg .b32 %i, %n; .reg .pred %past; .shared .align 16 .b8 box[256];",
        *declarations,
        f".reg .{_REGISTERS[size]} %out;",
        "mov.u32 %i, %ctaid.x; mov.u32 %n, %tid.x; mad.lo.u32 %i, %i, 64, %n;",
        "ld.param.u32 %n, [n]; setp.ge.u32 %past, %i, %n; @%past exit;",
        *loads,
        code,
        f"ld.param.u64 %at, [result]; mad.wide.u32 %at, %i, {size}, %at;",
        f"st.global.b{8 * size} [%at], %out; ret;",
        "}",
    ]
    grid = (-(-n // 64),)
    launch("\n".join(lines), "k", *arrays, result, np.uint32(n), grid=grid, block=(64,), **how)
    return result
