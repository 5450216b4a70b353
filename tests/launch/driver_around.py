"""The recording driver's functions around launches: events, other copies, textures."""

import ctypes

# The sizes of cuda.h's descriptors.
ARRAY_DESCRIPTOR, COPY, RESOURCE, TEXTURE = 40, 200, 144, 104


class AroundLaunches:
    """Functions of `DriverApi`; pending work is in ``not_ready``."""

    def cuMemGetInfo(self, free, total):
        return put(ctypes.c_size_t, free, 1 << 30) or put(ctypes.c_size_t, total, 1 << 37)

    def cuCtxGetStreamPriorityRange(self, least, greatest):
        return put(ctypes.c_int, least, 0) or put(ctypes.c_int, greatest, -5)

    def cuStreamQuery(self, stream):
        return 600 if stream in self.not_ready else 0

    def cuStreamWaitEvent(self, stream, event, flags):
        return 0 if event in self.events else 400

    def cuEventCreate(self, out, flags):
        handle = next(self._handles)
        self.events[handle] = self.contexts[self.stack[-1]]
        return put(ctypes.c_void_p, out, handle)

    def cuEventDestroy(self, event):
        return 0 if self.events.pop(event, None) is not None else 400

    def cuEventRecord(self, event, stream):
        on = self.streams.get(stream, self.stack[-1])
        return 0 if self.contexts[on] == self.events[event] else 400

    def cuEventQuery(self, event):
        return 600 if event in self.not_ready else 0

    def cuEventSynchronize(self, event):
        self.not_ready.discard(event)

    def cuEventElapsedTime(self, out, start, end):
        if {start, end} & self.not_ready:
            return 600
        return put(ctypes.c_float, out, self.elapsed.pop(0) if self.elapsed else 0.25)

    def cuMemcpyAsync(self, to, source, size, stream):
        ctypes.memmove(to, source, size)

    def cuMemsetD16Async(self, address, value, count, stream):
        ctypes.memmove(address, value.to_bytes(2, "little") * count, 2 * count)

    def cuMemsetD32Async(self, address, value, count, stream):
        ctypes.memmove(address, value.to_bytes(4, "little") * count, 4 * count)

    def cuMemsetD2D32Async(self, address, pitch, value, width, height, stream):
        for row in range(height):
            self.cuMemsetD32Async(address + row * pitch, value, width, stream)

    def cuMemHostAlloc(self, out, size, flags):
        buffer = ctypes.create_string_buffer(size)
        self.pinned[ctypes.addressof(buffer)] = buffer
        return put(ctypes.c_void_p, out, ctypes.addressof(buffer))

    def cuMemFreeHost(self, address):
        return 0 if self.pinned.pop(address, None) is not None else 1

    def cuMemAllocManaged(self, out, size, flags):
        return self.cuMemAlloc(out, size)

    def cuArray3DCreate(self, out, descriptor):
        self.descriptors.append(ctypes.string_at(descriptor, ARRAY_DESCRIPTOR))
        return self._object(out)

    def cuArrayDestroy(self, array):
        return 0 if self.objects.pop(array, None) is not None else 400

    def cuMemcpy3DAsync(self, copy, stream):
        self.descriptors.append(ctypes.string_at(copy, COPY))

    def cuTexObjectCreate(self, out, resource, texture, view):
        self.descriptors.append(ctypes.string_at(resource, RESOURCE))
        self.descriptors.append(ctypes.string_at(texture, TEXTURE))
        return self._object(out)

    def cuSurfObjectCreate(self, out, resource):
        self.descriptors.append(ctypes.string_at(resource, RESOURCE))
        return self._object(out)

    def cuTexObjectDestroy(self, handle):
        return self.cuArrayDestroy(handle)

    def cuSurfObjectDestroy(self, handle):
        return self.cuArrayDestroy(handle)

    def _object(self, out):
        handle = next(self._handles)
        self.objects[handle] = True
        return put(ctypes.c_uint64, out, handle)


def put(kind, address, value):
    """Write through an out parameter; give the code of success."""
    if address is not None:
        kind.from_address(address).value = value
    return 0
