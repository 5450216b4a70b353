"""A driver in Python that runs nothing and remembers everything, bit for bit.

It has two devices of the kind of an H100. What the real driver refuses it refuses with the same
code: no context, a block too large, shared memory that was not opted in to, loading during a
capture. Any function can be told to fail.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
import threading
from dataclasses import dataclass, field

import culaunch as cl
from culaunch import _core

# cuda.h: the parameters of each function. p: a pointer or handle, q: a device address, i: int or
# an enumeration, u: unsigned, z: size_t, b: unsigned char.
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
}  # fmt: skip
_TYPES = {
    "p": ctypes.c_void_p, "q": ctypes.c_uint64, "i": ctypes.c_int, "u": ctypes.c_uint,
    "z": ctypes.c_size_t, "b": ctypes.c_ubyte,
}  # fmt: skip

CODES = {
    0: "CUDA_SUCCESS", 1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY",
    201: "CUDA_ERROR_INVALID_CONTEXT", 209: "CUDA_ERROR_NO_BINARY_FOR_GPU",
    218: "CUDA_ERROR_INVALID_PTX", 222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    400: "CUDA_ERROR_INVALID_HANDLE", 500: "CUDA_ERROR_NOT_FOUND",
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
    1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 49152, 10: 32, 16: 132,
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


@dataclass(eq=False)
class FakeKernel:
    """A kernel of the recording driver; attributes are one dict for each device."""

    name: str
    layout: tuple[tuple[int, int], ...]
    attributes: list[dict[int, int]]
    handle: int = 0
    loaded: set[int] = field(default_factory=set)  # the contexts that it is resident in


@dataclass(frozen=True)
class Launch:
    """One cuLaunchKernelEx. `attributes` holds the 64 bytes of each attribute's value."""

    kernel: FakeKernel
    arguments: tuple[bytes, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_memory: int
    stream: int
    attributes: dict[int, bytes]
    device: int
    context: int
    thread: int


class RecordingDriver:
    """The driver; ``core`` is what culaunch takes. `device_types` are DLPack's, its own first."""

    def __init__(self, device_types=(2, 13, 3), devices=2, version=13000, instead=None):
        self.version = version
        self.devices = [dict(DEVICE_ATTRIBUTES) for _ in range(devices)]
        self.launches: list[Launch] = []
        self.calls: list[tuple[str, tuple]] = []
        self.failures: dict[str, list[int]] = {}
        self.defects: list[BaseException] = []  # exceptions in a callback: the fixture raises them
        self.contexts = {0xC0000 + i: i for i in range(devices)}  # the primary ones first
        self.streams: dict[int, int] = {}  # handle -> context
        self.capturing: set[int] = set()
        self.images: dict[bytes, dict] = {}
        self.libraries: dict[int, dict] = {}
        self.kernels: dict[int, FakeKernel] = {}
        self.functions: dict[int, tuple[FakeKernel, int]] = {}  # handle -> kernel, context
        self.memory: dict[int, tuple[int, object]] = {}  # address -> (device, buffer)
        self.jit_log = b""
        self.recording = True
        self._thread = threading.local()
        self._handles = itertools.count(0x10000, 16)
        self._kept = []
        self._of_one: dict = {}
        functions = {name: self._callback(name) for name in PROTOTYPES}
        functions.update(instead or {})
        self.core = _core.Driver.from_functions("recorder", functions, tuple(device_types))

    # ---- what a test does

    def kernel(self, *sizes, name="k", signature=None, layout=None, attributes=None):
        """Load a kernel whose parameters have these sizes, aligned as C aligns them."""
        layout = layout_of(sizes) if layout is None else layout
        module = cl.load(self.image({name: layout}, attributes={name: attributes or {}}))
        return module.kernel(name, signature=signature)

    def bytes_of(self, value, size, type=None) -> bytes:  # noqa: A002
        """Pass one value for a parameter of this size and type; give the bytes that arrived."""
        kernel = self._of_one.get((size, type))
        if kernel is None:
            kernel = self._of_one[size, type] = self.kernel(size, signature=type)
        kernel[1, 1](value)
        return self.last.arguments[0]

    def image(self, kernels, variables=None, attributes=None) -> bytes:
        """Make an image of the given kernels, {name: ((offset, size), ...)}, and variables."""
        text = b".version 8.4\n.target sm_90\n.address_size 64\n// %d\n" % next(self._handles)
        self.images[text] = {
            "kernels": kernels, "variables": variables or {}, "attributes": attributes or {},
        }  # fmt: skip
        return text

    def fail(self, function, *codes):
        """Let the next calls of a function give these codes."""
        self.failures.setdefault(function, []).extend(codes)

    def make_context(self, device=0) -> int:
        handle = next(self._handles)
        self.contexts[handle] = device
        return handle

    def make_stream(self, device=0) -> int:
        handle = next(self._handles)
        self.streams[handle] = 0xC0000 + device
        return handle

    def count(self, function) -> int:
        return sum(name == function for name, _ in self.calls)

    @property
    def stack(self) -> list[int]:
        """The contexts of this thread, the current one last."""
        return self._thread.__dict__.setdefault("stack", [])

    @property
    def last(self) -> Launch:
        return self.launches[-1]

    # ---- the driver API

    def _callback(self, name):
        method = getattr(self, name)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[_TYPES[code] for code in PROTOTYPES[name]])

        def call(*args):
            try:
                if self.recording:
                    self.calls.append((name, args))
                codes = self.failures.get(name)
                if codes:
                    return codes.pop(0)
                return method(*args) or 0
            except BaseException as error:  # noqa: BLE001
                self.defects.append(error)
                return 999

        callback = prototype(call)
        self._kept.append(callback)
        return ctypes.cast(callback, ctypes.c_void_p).value

    def cuInit(self, flags):
        pass

    def cuDriverGetVersion(self, out):
        return put(ctypes.c_int, out, self.version)

    def cuGetErrorName(self, code, out):
        return self._text(out, CODES.get(code))

    def cuGetErrorString(self, code, out):
        return self._text(out, CODES.get(code) and f"text of {code}")

    def cuDeviceGet(self, out, ordinal):
        put(ctypes.c_int, out, 100 + ordinal)  # a handle need not be the ordinal

    def cuDeviceGetCount(self, out):
        return put(ctypes.c_int, out, len(self.devices))

    def cuDeviceGetName(self, out, size, device):
        ctypes.memmove(out, b"Recorder\0", 9)

    def cuDeviceGetAttribute(self, out, attribute, device):
        value = self.devices[device - 100].get(attribute)
        if value is None:
            return 1
        return put(ctypes.c_int, out, value)

    def cuDevicePrimaryCtxRetain(self, out, device):
        return put(ctypes.c_void_p, out, 0xC0000 + device - 100)

    def cuCtxGetCurrent(self, out):
        return put(ctypes.c_void_p, out, self.stack[-1] if self.stack else None)

    def cuCtxGetDevice(self, out):
        if not self.stack:
            return 201
        return put(ctypes.c_int, out, 100 + self.contexts[self.stack[-1]])

    def cuCtxPushCurrent(self, context):
        self.stack.append(context)

    def cuCtxPopCurrent(self, out):
        return put(ctypes.c_void_p, out, self.stack.pop())

    def cuCtxSynchronize(self):
        return 0 if self.stack else 201

    def cuStreamGetCtx(self, stream, out):
        if stream not in self.streams:
            return 400
        return put(ctypes.c_void_p, out, self.streams[stream])

    def cuStreamSynchronize(self, stream):
        return 900 if stream in self.capturing else 0

    def cuStreamCreateWithPriority(self, out, flags, priority):
        handle = next(self._handles)
        self.streams[handle] = self.stack[-1]
        return put(ctypes.c_void_p, out, handle)

    def cuStreamDestroy(self, stream):
        return 0 if self.streams.pop(stream, None) else 400

    def cuThreadExchangeStreamCaptureMode(self, mode):
        before = getattr(self._thread, "mode", 0)
        self._thread.mode = ctypes.c_int.from_address(mode).value
        return put(ctypes.c_int, mode, before)

    def cuLibraryLoadData(self, out, code, options, values, count, *rest):
        if self.jit_log:
            log = ctypes.c_void_p.from_address(values).value
            ctypes.memmove(log, self.jit_log + b"\0", len(self.jit_log) + 1)
            return 218
        data = image_at(code)
        image = self.images.get(data) or described(data)
        library = next(self._handles)
        found = {}
        for name, layout in image["kernels"].items():
            own = [{**KERNEL_ATTRIBUTES, **image["attributes"].get(name, {})} for _ in self.devices]
            for attributes in own:
                attributes[DYNAMIC_SHARED] -= attributes[STATIC_SHARED]
            kernel = FakeKernel(name, tuple(layout), own, next(self._handles))
            found[name] = self.kernels[kernel.handle] = kernel
        self.libraries[library] = {**image, "kernels": found}
        return put(ctypes.c_void_p, out, library)

    def cuLibraryUnload(self, library):
        for kernel in self.libraries.pop(library)["kernels"].values():
            del self.kernels[kernel.handle]
            for handle in [one for one, known in self.functions.items() if known[0] is kernel]:
                del self.functions[handle]

    def cuLibraryGetKernel(self, out, library, name):
        kernel = self.libraries[library]["kernels"].get(ctypes.string_at(name).decode())
        if kernel is None:
            return 500
        return put(ctypes.c_void_p, out, kernel.handle)

    def cuLibraryGetKernelCount(self, out, library):
        return put(ctypes.c_uint, out, len(self.libraries[library]["kernels"]))

    def cuLibraryEnumerateKernels(self, out, count, library):
        kernels = list(self.libraries[library]["kernels"].values())[:count]
        for i, kernel in enumerate(kernels):
            put(ctypes.c_void_p, out + 8 * i, kernel.handle)

    def cuLibraryGetGlobal(self, address, size, library, name):
        variable = self.libraries[library]["variables"].get(ctypes.string_at(name).decode())
        if variable is None:
            return 500
        if not self.stack:
            return 201
        put(ctypes.c_uint64, address, variable[0] + 0x1000000 * self.contexts[self.stack[-1]])
        return put(ctypes.c_size_t, size, variable[1])

    def cuKernelGetName(self, out, kernel):
        return self._text(out, self.kernels[kernel].name)

    def cuKernelGetFunction(self, out, kernel):
        """Give the kernel's handle in the current context, which is good in no other."""
        if not self.stack:
            return 201
        for handle, known in self.functions.items():
            if known == (self.kernels[kernel], self.stack[-1]):
                return put(ctypes.c_void_p, out, handle)
        handle = next(self._handles)
        self.functions[handle] = (self.kernels[kernel], self.stack[-1])
        return put(ctypes.c_void_p, out, handle)

    def cuKernelGetParamInfo(self, kernel, index, offset, size):
        layout = self.kernels[kernel].layout
        if index >= len(layout):
            return 1
        put(ctypes.c_size_t, offset, layout[index][0])
        return put(ctypes.c_size_t, size, layout[index][1])

    def cuKernelGetAttribute(self, out, attribute, kernel, device):
        return put(ctypes.c_int, out, self.kernels[kernel].attributes[device - 100][attribute])

    def cuKernelSetAttribute(self, attribute, value, kernel, device):
        self.kernels[kernel].attributes[device - 100][attribute] = value

    def cuFuncLoad(self, function):
        if not self.stack:
            return 201
        if self.capturing and getattr(self._thread, "mode", 0) != RELAXED:
            return 900
        kernel, context = self.functions[function]
        kernel.loaded.add(context)
        return 0

    def cuLaunchKernelEx(self, config, function, parameters, extra):
        if not self.stack:
            return 201
        grid_block_shared = struct.unpack("7I", ctypes.string_at(config, 28))
        stream, attributes = struct.unpack("QQ", ctypes.string_at(config + 32, 16))
        # A CUkernel runs in the stream's context, a CUfunction in its own, which is current.
        if kernel := self.kernels.get(function):
            context = self.streams.get(stream, self.stack[-1])
        else:
            kernel, context = self.functions.get(function, (None, 0))
            if context != self.stack[-1]:
                return 400
        device = self.contexts[context]
        count = ctypes.c_uint.from_address(config + 48).value
        values = {}
        for i in range(count):
            identity = ctypes.c_uint.from_address(attributes + 72 * i).value
            values[identity] = ctypes.string_at(attributes + 72 * i + 8, 64)
        arguments = tuple(
            ctypes.string_at(ctypes.c_void_p.from_address(parameters + 8 * i).value, size)
            for i, (_, size) in enumerate(kernel.layout)
        )
        launch = Launch(
            kernel, arguments, grid_block_shared[:3], grid_block_shared[3:6], grid_block_shared[6],
            stream, values, device, context, threading.get_ident(),
        )  # fmt: skip
        code = self._refusal(launch)
        if code == 0 and self.recording:
            self.launches.append(launch)
        return code

    def _refusal(self, launch):
        limits, own = self.devices[launch.device], launch.kernel.attributes[launch.device]
        if launch.stream > 2 and self.streams[launch.stream] != launch.context:
            return 400
        if launch.stream in self.capturing and launch.context not in launch.kernel.loaded:
            return 900
        x, y, z = launch.block
        sizes = zip(launch.block + launch.grid, range(2, 8), strict=True)
        if x * y * z > own[MAX_THREADS] or any(size > limits[key] for size, key in sizes):
            return 1
        if launch.shared_memory > own[DYNAMIC_SHARED]:
            return 1
        grid = launch.grid[0] * launch.grid[1] * launch.grid[2]
        if COOPERATIVE in launch.attributes and grid > 2 * limits[16]:
            return 720
        if CLUSTER in launch.attributes:
            dims = struct.unpack("3I", launch.attributes[CLUSTER][:12])
            if dims[0] * dims[1] * dims[2] > (16 if own[LARGE_CLUSTER] else 8) or not limits[120]:
                return 912
        return 0

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, out, function, block, shared):
        return put(ctypes.c_int, out, 2)

    def cuOccupancyMaxPotentialBlockSize(self, grid, block, function, callback, shared, limit):
        put(ctypes.c_int, grid, 264)
        return put(ctypes.c_int, block, 768)

    def cuOccupancyMaxPotentialClusterSize(self, out, function, config):
        return put(
            ctypes.c_int, out, 16 if self._kernel(function).attributes[0][LARGE_CLUSTER] else 8
        )

    def cuOccupancyMaxActiveClusters(self, out, function, config):
        return put(ctypes.c_int, out, 33)

    def cuPointerGetAttribute(self, out, attribute, address):
        if attribute != 9 or address not in self.memory:  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
            return 1
        return put(ctypes.c_int, out, self.memory[address][0])

    def cuMemAlloc(self, out, size):
        if size > 1 << 32:
            return 2
        buffer = ctypes.create_string_buffer(size)
        self.memory[ctypes.addressof(buffer)] = (self.contexts[self.stack[-1]], buffer)
        return put(ctypes.c_uint64, out, ctypes.addressof(buffer))

    def cuMemFree(self, address):
        device, _ = self.memory.pop(address)
        return 0 if self.contexts[self.stack[-1]] == device else 1

    def cuMemAllocAsync(self, out, size, stream):
        return self.cuMemAlloc(out, size)

    def cuMemFreeAsync(self, address, stream):
        return self.cuMemFree(address)

    def cuMemcpyHtoDAsync(self, to, source, size, stream):
        ctypes.memmove(to, source, size)

    def cuMemcpyDtoHAsync(self, to, source, size, stream):
        ctypes.memmove(to, source, size)

    def cuMemsetD8Async(self, address, value, size, stream):
        ctypes.memset(address, value, size)

    def cuTensorMapEncodeTiled(
        self, out, element, rank, address, dims, strides, box, steps, *choices
    ):
        words = [element, rank, address or 0, *choices]
        for pointer, kind, count in (
            (dims, "Q", rank), (strides, "Q", rank - 1), (box, "I", rank), (steps, "I", rank),
        ):  # fmt: skip
            form = f"{count}{kind}"
            words.append(struct.unpack(form, ctypes.string_at(pointer, struct.calcsize(form))))
        self.tensor_map = tuple(words)
        ctypes.memset(out, 0x5A, 128)
        return 0 if out % 64 == 0 else 1

    def _kernel(self, function):
        known = self.functions.get(function)
        return known[0] if known else self.kernels[function]

    def _text(self, out, text):
        if text is None:
            return 1
        self._kept.append(ctypes.create_string_buffer(text.encode()))
        put(ctypes.c_void_p, out, ctypes.addressof(self._kept[-1]))
        return 0


def put(kind, address, value):
    """Write through an out parameter; give the code of success."""
    if address is not None:
        kind.from_address(address).value = value
    return 0


def layout_of(sizes):
    """Place parameters as C does: each at a multiple of the largest power of 2 in its size."""
    layout, end = [], 0
    for size in sizes:
        alignment = min(size & -size, 16)
        offset = (end + alignment - 1) // alignment * alignment
        layout.append((offset, size))
        end = offset + size
    return tuple(layout)


def image_at(address) -> bytes:
    """Read an image of which only the address is known, as the driver does."""
    magic = ctypes.string_at(address, 4)
    if magic == b"\x7fELF":
        header = ctypes.string_at(address, 64)
        segments, sections = struct.unpack_from("<QQ", header, 32)
        segment_count, _, section_count = struct.unpack_from("<HHH", header, 56)
        end = max(sections + 64 * section_count, segments + 56 * segment_count)
        return ctypes.string_at(address, end)
    if magic == b"\x50\xed\x55\xba":
        _, start, size = struct.unpack("<HHQ", ctypes.string_at(address + 4, 12))
        return ctypes.string_at(address, start + size)
    return ctypes.string_at(address)


def described(data) -> dict:
    """Take the kernels of a real image from what it says of itself."""
    kernels, attributes = {}, {}
    for kernel in cl.Image(data).kernels:
        kernels[kernel.name] = tuple((one.offset, one.size) for one in kernel.params)
        attributes[kernel.name] = {
            STATIC_SHARED: kernel.static_shared or 0, REGISTERS: kernel.registers or 0,
            MAX_THREADS: math.prod(kernel.max_threads or (1024,)),
        }  # fmt: skip
    return {"kernels": kernels, "variables": {}, "attributes": attributes}
