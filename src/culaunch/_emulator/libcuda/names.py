"""The names under which programs ask for a function: forms of cuda.h, and cuGetProcAddress."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

from culaunch._emulator.driver.c_types import DRIVER_VERSION
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._emulator.fault import NOT_FOUND
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.libcuda.passed_on import PASSED_ON

# Functions that have no effect here. A later form with more parameters has none, either.
NO_EFFECT = {
    "cuCtxSetCacheConfig", "cuCtxSetFlags", "cuCtxSetSharedMemConfig", "cuDevicePrimaryCtxReset",
    "cuDevicePrimaryCtxSetFlags", "cuFuncSetCacheConfig", "cuFuncSetSharedMemConfig",
    "cuKernelSetCacheConfig", "cuMemAdvise", "cuMemPoolSetAccess", "cuMemPrefetchAsync",
    "cuProfilerInitialize", "cuProfilerStart", "cuProfilerStop", "cuStreamAttachMemAsync",
    "cudaDeviceReset", "cudaDeviceSetCacheConfig",
    "cudaFuncSetCacheConfig", "cudaInitDevice", "cudaMemAdvise", "cudaMemPoolSetAccess",
    "cudaMemPrefetchAsync", "cudaProfilerStart", "cudaProfilerStop", "cudaSetDeviceFlags",
    "cudaStreamAttachMemAsync",
}  # fmt: skip
# Names of forms that are not the method's: their addresses have 32 bits, or their structures are
# others.
_OTHER_FORMS = re.compile(
    "cu(Array(3D)?(Create|GetDescriptor)|DeviceTotalMem|GraphAddKernelNode|Graph(Exec)?KernelNode[GS]etParams|GraphExecUpdate|"
    "Mem(Alloc(Host|Pitch)?|Free|Get(AddressRange|Info)|HostGetDevicePointer|"
    "cpy([23]D|[ADH]to[ADH])(Async|Unaligned)?|setD(2D)?(8|16|32))|ModuleGetGlobal|"
    "StreamGetCtx_v2|TexRefSetAddress(2D)?)"
)
# The version of CUDA that a form came with, if the first cuGetProcAddress is older.
_SINCE = {
    "cuCtxCreate_v3": 11040,
    "cuCtxCreate_v4": 12050,
    "cuCtxGetDevice_v2": 13000,
    "cuCtxSynchronize_v2": 13000,
    "cuDeviceGetUuid_v2": 11040,
    "cuEventElapsedTime_v2": 12080,
    "cuGetProcAddress_v2": 12000,
    "cuGraphAddDependencies_v2": 12030,
    "cuGraphAddKernelNode_v2": 12000,
    "cuGraphAddNode_v2": 12030,
    "cuGraphAddNode_v3": 13040,
    "cuGraphExecKernelNodeSetParams_v2": 12000,
    "cuGraphExecUpdate_v2": 12000,
    "cuGraphGetEdges_v2": 12030,
    "cuGraphKernelNodeGetParams_v2": 12000,
    "cuGraphKernelNodeSetParams_v2": 12000,
    "cuGraphNodeSetParams_v2": 13040,
    "cuLaunchHostFunc_v2": 13010,
    "cuMemAdvise_v2": 12020,
    "cuMemPrefetchAsync_v2": 12020,
    "cuStreamGetCaptureInfo_v3": 12030,
    "cuStreamGetCtx_v2": 12050,
    "cuStreamUpdateCaptureDependencies_v2": 12030,
}


def method_name(driver: EmulatedDriver, name: str) -> str | None:
    """Return the method that is an exported function, or None."""
    name = re.sub("_ptsz$|_ptds$", "", name)
    name = name.replace("__cuda", "nvcc")
    if name.startswith("cuda") and name[4:] in PASSED_ON:
        return f"cu{PASSED_ON[name[4:]]}"
    base = re.sub(r"_v\d$", "", name)
    for method in (name, base):
        if hasattr(driver, method) or method in NO_EFFECT:
            return None if _OTHER_FORMS.fullmatch(name) else method
    return None


class NameFunctions(EmulatedDriver):
    """The functions that find functions."""

    @takes("s *p i q *i")
    def cuGetProcAddress_v2(
        self, name: bytes, out: Any, version: int, flags: int, status: Any
    ) -> None:
        symbol = name.decode()
        # Every form of a function is exported, also those that only say that they are missing.
        library = ctypes.CDLL(str(Path(__file__).with_name("libcuda.so.1")))
        forms = [
            form
            for form in (symbol, *(f"{symbol}_v{n}" for n in range(2, 6)))
            if hasattr(library, form)
        ]
        fitting = [form for form in forms if _SINCE.get(form, 0) <= version]
        # CUdriverProcAddressQueryResult: no such function, or none that is old enough.
        if status:
            status[0] = 0 if fitting else 2 if forms else 1
        out[0] = None
        if not fitting:
            raise Refusal(NOT_FOUND, f"there is no function {symbol} in CUDA {version}")
        out[0] = ctypes.cast(getattr(library, fitting[-1]), ctypes.c_void_p).value

    @takes("s *p i q")
    def cuGetProcAddress(self, name: bytes, out: Any, version: int, flags: int) -> None:
        self.cuGetProcAddress_v2(name, out, version, flags, None)

    @takes("s *p u q *i")
    def cudaGetDriverEntryPointByVersion(
        self, name: bytes, out: Any, version: int, *rest: Any
    ) -> None:
        self.cuGetProcAddress_v2(name, out, version, *rest)

    @takes("s *p q *i")
    def cudaGetDriverEntryPoint(self, name: bytes, out: Any, flags: int, status: Any) -> None:
        self.cuGetProcAddress_v2(name, out, DRIVER_VERSION, flags, status)
