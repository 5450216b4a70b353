"""The driver API as the recording driver answers it: each method is one function of cuda.h."""

from __future__ import annotations

import ctypes
import math
import struct
import threading
from dataclasses import dataclass, field

from driver_around import AroundLaunches, put
from driver_tables import (
    CLUSTER,
    CODES,
    COOPERATIVE,
    DYNAMIC_SHARED,
    KERNEL_ATTRIBUTES,
    LARGE_CLUSTER,
    MAX_THREADS,
    REGISTERS,
    RELAXED,
    STATIC_SHARED,
)

import culaunch as cl


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


class DriverApi(AroundLaunches):
    """The functions; `RecordingDriver` has the state that they read and change."""

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

    device_name = b"Recorder"

    def cuDeviceGetName(self, out, size, device):
        ctypes.memmove(out, self.device_name + b"\0", len(self.device_name) + 1)

    def cuDeviceGetAttribute(self, out, attribute, device):
        value = self.devices[device - 100].get(attribute)
        if value is None:
            return 1
        return put(ctypes.c_int, out, value)

    def cuDevicePrimaryCtxRetain(self, out, device):
        return put(ctypes.c_void_p, out, 0xC0000 + device - 100)

    def cuDevicePrimaryCtxRelease(self, device):
        """Let one go, which stays as it is."""

    def cuDeviceCanAccessPeer(self, out, device, peer):
        return put(ctypes.c_int, out, (device - 100, peer - 100) not in self.apart)

    def cuCtxEnablePeerAccess(self, context, flags):
        pair = (self.stack[-1], context)
        if pair in self.peers:
            return 704
        self.peers.add(pair)
        return 0

    def cuCtxGetCurrent(self, out):
        return put(ctypes.c_void_p, out, self.stack[-1] if self.stack else None)

    def cuCtxGetDevice(self, out):
        if not self.stack:
            return 201
        return put(ctypes.c_int, out, 100 + self.contexts[self.stack[-1]])

    def cuCtxGetId(self, context, out):
        # Unique for the life of the process, as an address is not.
        return put(ctypes.c_uint64, out, self.ids.setdefault(context, next(self._numbers)))

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

    def cuStreamIsCapturing(self, stream, out):
        return put(ctypes.c_int, out, int(stream in self.capturing))

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
            for handle in [
                one for one, known in self.functions.copy().items() if known[0] is kernel
            ]:
                self.functions.pop(handle, None)

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
        """Return the kernel's handle in the current context, which is good in no other."""
        if not self.stack:
            return 201
        for handle, known in self.functions.copy().items():  # other threads add to it
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
        grid_block_shared = struct.unpack("7I", ctypes.string_at(config, 28))
        stream, attributes = struct.unpack("QQ", ctypes.string_at(config + 32, 16))
        # In the stream's context, whatever is current; a default stream is the current context's.
        context = self.streams.get(stream) or (self.stack[-1] if self.stack else None)
        if context is None:
            return 201
        kernel = self.kernels.get(function)
        if kernel is None:
            kernel, own = self.functions.get(function, (None, 0))
            if own != context:
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


def image_at(address) -> bytes:
    """Read an image from its address, without its size, as the driver does."""
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
        kernels[kernel.name] = tuple((one.offset, one.size) for one in kernel.parameters)
        attributes[kernel.name] = {
            STATIC_SHARED: kernel.static_shared or 0, REGISTERS: kernel.registers or 0,
            MAX_THREADS: math.prod(kernel.max_threads or (1024,)),
        }  # fmt: skip
    return {"kernels": kernels, "variables": {}, "attributes": attributes}
