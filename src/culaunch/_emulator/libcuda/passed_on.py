"""Functions that are another function: the same parameters, or further ones that are constant."""

from __future__ import annotations

import re
from typing import Any

from culaunch._emulator.libcuda.c_function import takes, words_of

# The functions that are the driver function of the same name, without "cuda" and "cu".
_SAME = (
    "DeviceCanAccessPeer", "DeviceGetAttribute", "DeviceGetByPCIBusId", "DeviceGetDefaultMemPool",
    "DeviceGetMemPool", "DeviceGetPCIBusId", "DeviceGraphMemTrim", "DeviceSetMemPool",
    "DriverGetVersion", "EventDestroy", "EventElapsedTime", "EventQuery", "EventRecord",
    "EventRecordWithFlags", "EventSynchronize", "GraphAddChildGraphNode", "GraphAddEmptyNode",
    "GraphAddEventRecordNode", "GraphAddEventWaitNode", "GraphAddHostNode", "GraphAddMemAllocNode",
    "GraphAddMemFreeNode", "GraphClone", "GraphCreate", "GraphDestroy", "GraphDestroyNode",
    "GraphExecDestroy", "GraphExecHostNodeSetParams", "GraphExecUpdate", "GraphGetNodes",
    "GraphInstantiateWithFlags", "GraphLaunch", "GraphMemAllocNodeGetParams",
    "GraphMemFreeNodeGetParams", "GraphNodeGetType", "GraphUpload", "LaunchHostFunc",
    "LibraryEnumerateKernels", "LibraryGetGlobal", "LibraryGetKernel", "LibraryGetKernelCount",
    "LibraryGetManaged", "LibraryLoadData", "LibraryLoadFromFile", "LibraryUnload", "MemGetInfo",
    "MemPoolCreate", "MemPoolDestroy", "MemPoolGetAttribute", "MemPoolSetAttribute",
    "MemPoolTrimTo", "StreamAddCallback", "StreamBeginCaptureToGraph", "StreamCreateWithPriority",
    "StreamDestroy", "StreamEndCapture", "StreamIsCapturing", "StreamQuery", "StreamSynchronize",
    "StreamWaitEvent",
)  # fmt: skip
# All functions that are a driver function with the same parameters.
PASSED_ON = {name: name for name in _SAME} | {
    "DestroySurfaceObject": "SurfObjectDestroy",
    "DestroyTextureObject": "TexObjectDestroy",
    "DeviceGetLimit": "CtxGetLimit",
    "DeviceGetStreamPriorityRange": "CtxGetStreamPriorityRange",
    "DeviceSetLimit": "CtxSetLimit",
    "DeviceSynchronize": "CtxSynchronize",
    "EventCreateWithFlags": "EventCreate",
    "Free": "MemFree",
    "FreeAsync": "MemFreeAsync",
    "FreeHost": "MemFreeHost",
    "FreeMipmappedArray": "MipmappedArrayDestroy",
    "GetDevice": "CtxGetDevice",
    "GetDeviceCount": "DeviceGetCount",
    "GetMipmappedArrayLevel": "MipmappedArrayGetLevel",
    "GraphAddDependencies": "GraphAddDependencies_v2",
    "GraphInstantiate": "GraphInstantiateWithFlags",
    "HostAlloc": "MemHostAlloc",
    "HostGetDevicePointer": "MemHostGetDevicePointer",
    "HostGetFlags": "MemHostGetFlags",
    "HostRegister": "MemHostRegister",
    "HostUnregister": "MemHostUnregister",
    "MallocAsync": "MemAllocAsync",
    "MallocFromPoolAsync": "MemAllocFromPoolAsync",
    "MallocHost": "MemAllocHost",
    "MallocManaged": "MemAllocManaged",
    "RuntimeGetVersion": "DriverGetVersion",
    "StreamBeginCapture": "StreamBeginCapture_v2",
    "StreamCreateWithFlags": "StreamCreate",
    "StreamGetCaptureInfo": "StreamGetCaptureInfo_v3",
    "StreamUpdateCaptureDependencies": "StreamUpdateCaptureDependencies_v2",
}
# Functions that are another one, and the last arguments that it gets.
_FORMS: dict[str, tuple[str, int] | tuple[str]] = {
    "cuFuncGetAttribute": ("cuKernelGetAttribute", 0),
    "cuFuncGetName": ("cuKernelGetName",),
    "cuFuncGetParamInfo": ("cuKernelGetParamInfo",),
    "cuKernelGetLibrary": ("cuFuncGetModule",),
    "cuLibraryGetManaged": ("cuLibraryGetGlobal",),
    "cuMemAllocHost": ("cuMemHostAlloc", 0),
    "cuMemcpy2DUnaligned": ("cuMemcpy2DAsync", 0),
    "cuModuleEnumerateFunctions": ("cuLibraryEnumerateKernels",),
    "cuModuleGetFunction": ("cuLibraryGetKernel",),
    "cuModuleGetFunctionCount": ("cuLibraryGetKernelCount",),
    "cuModuleGetGlobal": ("cuLibraryGetGlobal",),
    "cuModuleLoadFatBinary": ("cuModuleLoadData",),
    "cuModuleUnload": ("cuLibraryUnload",),
    "cuStreamCreate": ("cuStreamCreateWithPriority", 0),
    "cudaEventCreate": ("cuEventCreate", 0),
    "cudaGraphAddMemsetNode": ("cuGraphAddMemsetNode", 0),
    "cudaMallocPitch": ("cuMemAllocPitch", 4),
    "cudaStreamCreate": ("cuStreamCreate", 0),
    "nvccLaunchKernel": ("cudaLaunchKernel",),
}


def add_forms(driver: type) -> None:
    """Give the driver these forms, and for each copy and fill the one without a stream."""
    for name, (own, *last) in _FORMS.items():
        setattr(driver, name, _form(driver, name, own, *last))
    for own in [name for name in dir(driver) if re.fullmatch("cu.*Mem(cpy|set).*Async", name)]:
        name = own.removesuffix("Async")
        if not hasattr(driver, name):
            setattr(driver, name, _form(driver, name, own, 0))


def _form(driver: type, name: str, own: str, *last: int) -> Any:
    def function(self: Any, *given: Any) -> None:
        getattr(self, own)(*given, *last)

    function.__name__ = name
    words = words_of(getattr(driver, own))
    return takes(" ".join(words[: len(words) - len(last)]))(function)
