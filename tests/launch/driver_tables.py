"""The functions, codes and attributes that the recording driver knows."""

import ctypes

from culaunch import _core
from culaunch._base.cuda import DeviceAttribute, FunctionAttribute, LaunchAttribute, Result

# By the first letter of a word of Driver.prototypes(); * is any pointer.
PARAMETER_TYPES = {
    "*": ctypes.c_void_p, "p": ctypes.c_void_p, "s": ctypes.c_void_p, "q": ctypes.c_uint64,
    "i": ctypes.c_int, "u": ctypes.c_uint, "z": ctypes.c_size_t, "b": ctypes.c_ubyte,
    "h": ctypes.c_ushort,
}  # fmt: skip
PROTOTYPES = {
    name: [PARAMETER_TYPES[word[0]] for word in words]
    for name, words in _core.Driver.prototypes().items()
}
CODES = {int(result): result.full_name for result in Result}

# The attributes of an H100.
_H100 = {
    "MAX_THREADS_PER_BLOCK": 1024, "MAX_BLOCK_DIM_X": 1024, "MAX_BLOCK_DIM_Y": 1024,
    "MAX_BLOCK_DIM_Z": 64, "MAX_GRID_DIM_X": 2**31 - 1, "MAX_GRID_DIM_Y": 65535,
    "MAX_GRID_DIM_Z": 65535, "MAX_SHARED_MEMORY_PER_BLOCK": 49152, "WARP_SIZE": 32,
    "MAX_REGISTERS_PER_BLOCK": 65536, "CLOCK_RATE": 1980000, "MULTIPROCESSOR_COUNT": 132,
    "MEMORY_CLOCK_RATE": 2619000, "GLOBAL_MEMORY_BUS_WIDTH": 5120, "L2_CACHE_SIZE": 1 << 20,
    "COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233472, "COOPERATIVE_LAUNCH": 1,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448, "CLUSTER_LAUNCH": 1,
}  # fmt: skip
DEVICE_ATTRIBUTES = {int(DeviceAttribute[name]): value for name, value in _H100.items()}

MAX_THREADS = FunctionAttribute.MAX_THREADS_PER_BLOCK
STATIC_SHARED = FunctionAttribute.SHARED_SIZE_BYTES
REGISTERS = FunctionAttribute.NUM_REGS
DYNAMIC_SHARED = FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
LARGE_CLUSTER = FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED
# Default attributes of a kernel; the last two are too new for it.
KERNEL_ATTRIBUTES = dict.fromkeys(list(FunctionAttribute)[:-2], 0) | {
    MAX_THREADS: 1024, REGISTERS: 32, FunctionAttribute.PTX_VERSION: 90,
    FunctionAttribute.BINARY_VERSION: 90, DYNAMIC_SHARED: 49152,
    FunctionAttribute.PREFERRED_SHARED_MEMORY_CARVEOUT: -1,
}  # fmt: skip

CLUSTER = LaunchAttribute.CLUSTER_DIMENSION
COOPERATIVE = LaunchAttribute.COOPERATIVE
PROGRAMMATIC = LaunchAttribute.PROGRAMMATIC_STREAM_SERIALIZATION
PRIORITY = LaunchAttribute.PRIORITY
PREFERRED_CLUSTER = LaunchAttribute.PREFERRED_CLUSTER_DIMENSION
RELAXED = 2  # CUstreamCaptureMode
