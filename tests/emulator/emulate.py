"""Launch PTX on an emulated device from NumPy arrays."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from culaunch._emulator import Device, ModuleInstance, Options, PtxModule


@functools.lru_cache(maxsize=64)
def module_of(ptx: str) -> PtxModule:
    return PtxModule(ptx)


def pack(module: PtxModule, kernel: str, arguments: tuple[Any, ...]) -> bytes:
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
    cooperative: bool = False,
    device: Device | None = None,
    instance: ModuleInstance | None = None,
    **options: Any,
) -> ModuleInstance:
    """Run a kernel once on a new device; arrays among the arguments are its memory."""
    device = device or Device(options=Options(**options))
    instance = instance or device.load(module_of(ptx))
    device.launch(
        instance,
        kernel,
        pack(instance.module, kernel, arguments),
        grid,
        block,
        shared,
        cooperative=cooperative,
        ranges=[(a.ctypes.data, a.nbytes) for a in arguments if isinstance(a, np.ndarray)],
    )
    return instance
