"""What cuda.h says of the functions, codes and attributes that the recording driver knows."""

import ctypes

# cuda.h: the parameters of each function. p: a pointer or handle, q: a device address, i: int or
# an enumeration, u: unsigned, z: size_t, b: unsigned char, h: unsigned short.
PROTOTYPES = {
    "cuInit": "u", "cuDriverGetVersion": "p", "cuGetErrorName": "ip", "cuGetErrorString": "ip",
    "cuDeviceGet": "pi", "cuDeviceGetCount": "p", "cuDeviceGetName": "pii",
    "cuDeviceGetAttribute": "pii", "cuDevicePrimaryCtxRetain": "pi", "cuCtxGetCurrent": "p",
    "cuCtxGetDevice": "p", "cuCtxPushCurrent": "p", "cuCtxPopCurrent": "p", "cuCtxSynchronize": "",
    "cuStreamGetCtx": "pp", "cuStreamSynchronize": "p", "cuStreamCreateWithPriority": "pui",
    "cuStreamDestroy": "p", "cuThreadExchangeStreamCaptureMode": "p",
    "cuLibraryLoadData": "ppppuppu", "cuLibraryUnload": "p", "cuLibraryGetKernel": "ppp",
    "cuLibraryGetKernelCount": "pp", "cuLibraryEnumerateKernels": "pup",
    "cuLibraryGetGlobal": "pppp", "cuKernelGetName": "pp", "cuKernelGetFunction": "pp",
    "cuKernelGetParamInfo": "pzpp", "cuKernelGetAttribute": "pipi", "cuKernelSetAttribute": "iipi",
    "cuFuncLoad": "p", "cuLaunchKernelEx": "pppp",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": "ppiz",
    "cuOccupancyMaxPotentialBlockSize": "ppppzi", "cuOccupancyMaxPotentialClusterSize": "ppp",
    "cuOccupancyMaxActiveClusters": "ppp", "cuPointerGetAttribute": "piq", "cuMemAlloc": "pz",
    "cuMemFree": "q", "cuMemAllocAsync": "pzp", "cuMemFreeAsync": "qp",
    "cuMemcpyHtoDAsync": "qpzp", "cuMemcpyDtoHAsync": "pqzp", "cuMemsetD8Async": "qbzp",
    "cuTensorMapEncodeTiled": "piupppppiiii",
    "cuMemGetInfo": "pp", "cuCtxGetStreamPriorityRange": "pp", "cuStreamQuery": "p",
    "cuStreamWaitEvent": "ppu", "cuEventCreate": "pu", "cuEventDestroy": "p",
    "cuEventRecord": "pp", "cuEventQuery": "p", "cuEventSynchronize": "p",
    "cuEventElapsedTime": "ppp", "cuMemcpyAsync": "qqzp", "cuMemsetD16Async": "qhzp",
    "cuMemsetD32Async": "quzp", "cuMemsetD2D32Async": "qzuzzp", "cuMemHostAlloc": "pzu",
    "cuMemFreeHost": "p", "cuMemAllocManaged": "pzu", "cuArray3DCreate": "pp",
    "cuArrayDestroy": "p", "cuMemcpy3DAsync": "pp", "cuTexObjectCreate": "pppp",
    "cuTexObjectDestroy": "q", "cuSurfObjectCreate": "pp", "cuSurfObjectDestroy": "q",
}  # fmt: skip
PARAMETER_TYPES = {
    "p": ctypes.c_void_p, "q": ctypes.c_uint64, "i": ctypes.c_int, "u": ctypes.c_uint,
    "z": ctypes.c_size_t, "b": ctypes.c_ubyte,
    "h": ctypes.c_ushort,
}  # fmt: skip

CODES = {
    0: "CUDA_SUCCESS", 1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY",
    201: "CUDA_ERROR_INVALID_CONTEXT", 209: "CUDA_ERROR_NO_BINARY_FOR_GPU",
    218: "CUDA_ERROR_INVALID_PTX", 222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    400: "CUDA_ERROR_INVALID_HANDLE", 500: "CUDA_ERROR_NOT_FOUND", 600: "CUDA_ERROR_NOT_READY",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS", 701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    702: "CUDA_ERROR_LAUNCH_TIMEOUT", 709: "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    710: "CUDA_ERROR_ASSERT", 714: "CUDA_ERROR_HARDWARE_STACK_ERROR",
    715: "CUDA_ERROR_ILLEGAL_INSTRUCTION", 716: "CUDA_ERROR_MISALIGNED_ADDRESS",
    717: "CUDA_ERROR_INVALID_ADDRESS_SPACE", 718: "CUDA_ERROR_INVALID_PC",
    719: "CUDA_ERROR_LAUNCH_FAILED", 720: "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
    801: "CUDA_ERROR_NOT_SUPPORTED", 900: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
    912: "CUDA_ERROR_INVALID_CLUSTER_SIZE", 999: "CUDA_ERROR_UNKNOWN",
}  # fmt: skip

# CUdevice_attribute of an H100.
DEVICE_ATTRIBUTES = {
    1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 49152, 10: 32,
    12: 65536, 13: 1980000, 16: 132, 36: 2619000, 37: 5120, 38: 1 << 20,
    75: 9, 76: 0, 81: 233472, 95: 1, 97: 232448, 120: 1,
}  # fmt: skip

# CUfunction_attribute: what a kernel has where a test says nothing else.
MAX_THREADS, STATIC_SHARED, REGISTERS, DYNAMIC_SHARED, LARGE_CLUSTER = 0, 1, 4, 8, 14
KERNEL_ATTRIBUTES = {
    MAX_THREADS: 1024, STATIC_SHARED: 0, 2: 0, 3: 0, REGISTERS: 32, 5: 90, 6: 90, 7: 0,
    DYNAMIC_SHARED: 49152, 9: -1, 10: 0, 11: 0, 12: 0, 13: 0, LARGE_CLUSTER: 0, 15: 0,
}  # fmt: skip

CLUSTER, COOPERATIVE, PROGRAMMATIC, PRIORITY, PREFERRED_CLUSTER = 4, 2, 6, 8, 11
RELAXED = 2
