"""A double of XLA's interface for custom calls, which is as strict as XLA on a GPU.

XLA's CPU client allocates nothing and has no streams. The requests of a call on a GPU come to this
double. It refuses what XLA refuses (sizes of structures, alignments). It also reports mistakes that
XLA hides. Examples are memory that does not come back, or with another size, errors that nobody
reads or destroys, and calls for another context or outside a call.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p

import culaunch as cl
from culaunch import _core

DTYPES = {"bool": 1, "int8": 2, "int32": 4, "int64": 5, "float16": 10, "float32": 11, "float64": 12}
# The functions of the interface, in its order; the last is of version 0.4.
FUNCTIONS = (
    "Error_Create", "Error_GetDetails", "Error_Destroy", "Handler_Register", "Stream_Get",
    "Type_Register", "ExecutionContext_Get", "State_Set", "State_Get", "DeviceMemory_Allocate",
    "DeviceMemory_Free", "ThreadPool_Schedule", "ThreadPool_NumThreads", "Future_Create",
    "Future_SetAvailable", "Future_SetError", "RunId_Get", "DeviceOrdinal_Get",
    "InvokeContext_FindExtension",
)  # fmt: skip
HEADER = [("size", c_size_t), ("extensions", c_void_p)]


def structure(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": [*HEADER, *fields]})


def size_of(kind):
    """Return the size as XLA counts it: to the end of the last member, without padding."""
    name, member = kind._fields_[-1]
    return getattr(kind, name).offset + ctypes.sizeof(member)


Version = structure("Version", ("major", c_int), ("minor", c_int))
ErrorArguments = structure("ErrorArguments", ("message", c_char_p), ("code", c_int))
Message = structure("Message", ("error", c_void_p), ("message", c_void_p))
Details = structure("Details", ("error", c_void_p), ("message", c_void_p), ("code", c_int))
Destroy = structure("Destroy", ("error", c_void_p))
Stream = structure("Stream", ("context", c_void_p), ("stream", c_void_p))
Allocate = structure("Allocate", ("context", c_void_p), ("bytes", c_size_t),
                     ("alignment", c_size_t), ("data", c_void_p))  # fmt: skip
Free = structure("Free", ("context", c_void_p), ("bytes", c_size_t), ("data", c_void_p))
Ordinal = structure("Ordinal", ("context", c_void_p), ("ordinal", ctypes.c_int32))
Api = structure("Api", ("version", Version), ("internal", c_void_p),
                *((name, c_void_p) for name in FUNCTIONS))  # fmt: skip
Buffer = structure("Buffer", ("dtype", c_int), ("data", c_void_p), ("rank", c_int64),
                   ("dims", POINTER(c_int64)))  # fmt: skip
Buffers = structure("Buffers", ("count", c_int64), ("types", POINTER(c_int)),
                    ("buffers", POINTER(c_void_p)))  # fmt: skip
Attributes = structure("Attributes", ("count", c_int64), ("types", POINTER(c_int)),
                       ("names", POINTER(c_void_p)), ("values", POINTER(c_void_p)))  # fmt: skip
Frame = structure("Frame", ("api", c_void_p), ("context", c_void_p), ("stage", c_int),
                  ("arguments", Buffers), ("results", Buffers), ("attributes", Attributes),
                  ("future", c_void_p))  # fmt: skip


class Span(ctypes.Structure):
    _fields_ = [("data", c_char_p), ("size", c_size_t)]


class Metadata(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("version", Version), ("traits", c_uint32), ("state", c_int64),
    ]  # fmt: skip


class Extension(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("type", c_int), ("next", c_void_p), ("metadata", POINTER(Metadata)),
    ]  # fmt: skip


def handler_of(platform, minor):
    """Return the handler of the extension, as XLA calls it."""
    address = ctypes.pythonapi["PyCapsule_GetPointer"]
    address.argtypes, address.restype = [ctypes.py_object, c_char_p], c_void_p
    capsule = _core.xla_handler(platform, minor)
    return CFUNCTYPE(c_void_p, c_void_p)(address(capsule, None))


class XlaDouble:
    """XLA on a GPU, with the memory of the driver in use.

    Parameters
    ----------
    minor : int
        The version of the interface: 1 of JAX 0.6 to 0.8, ... 4 of JAX 0.11.
    stream, ordinal : int
        Reported for each call.

    Attributes
    ----------
    defects : list of str
        The violations.
    fails : dict
        The results of the next calls of a function, which then do nothing; None is success:
        ``{"Stream_Get": [None, "text"]}``.
    allocated : list of int
        The bytes of each allocation.
    beside : int
        The offset of its memory from an aligned address.
    """

    CONTEXT = 0xC0117E

    def __init__(self, minor=4, stream=0, ordinal=0, platform="CUDA"):
        self.minor, self.stream, self.ordinal = minor, stream, ordinal
        self.defects, self.fails, self.allocated = [], {}, []
        self.beside = 0
        self._memory, self._errors, self._read = {}, {}, set()
        self._is_called = False
        self._kept = []
        self._handler = handler_of(platform, minor)
        self._api = self._made_api()

    def call(self, text, arguments, results, stage=3):
        """Call a function; return XLA's error as a text, or None."""
        frame = self._frame(text, arguments, results, stage)
        self._is_called = True
        error = self._handler(ctypes.addressof(frame))
        self._is_called = False
        said = None
        if error:
            said, self._read = self._errors.pop(error)[0], self._read - {error}
        if self._memory:
            self.defects.append(f"{len(self._memory)} allocations did not come back")
        if self._errors:
            self.defects.append(f"{len(self._errors)} errors were not destroyed")
        return said

    # ---- the interface

    def stream_get(self, arguments):
        arguments.stream = self.stream

    def device_ordinal_get(self, arguments):
        arguments.ordinal = self.ordinal

    def device_memory_allocate(self, arguments):
        alignment = arguments.alignment
        if alignment == 0 or alignment & (alignment - 1) or alignment > 16:
            return f"Unsupported alignment: {alignment}"
        # Unwritten memory has values that no test expects.
        block = cl.empty((arguments.bytes + self.beside,), "uint8")
        block.fill(0xA5)
        arguments.data = block.address + self.beside
        self._memory[arguments.data] = (arguments.bytes, block)
        self.allocated.append(arguments.bytes)
        return None

    def device_memory_free(self, arguments):
        size, _ = self._memory.pop(arguments.data, (None, None))
        if size != arguments.bytes:
            self.defects.append(f"freed {arguments.bytes} bytes of an allocation of {size}")

    def _error(self, text, code=3):
        holder = ctypes.create_string_buffer(text.encode())
        address = ctypes.addressof(holder)
        self._errors[address] = (text, code, holder)
        return address

    def _create(self, address):
        arguments = ErrorArguments.from_address(address)
        self._check_size("Error_Create", arguments, ErrorArguments)
        made = self._error(arguments.message.decode(), arguments.code)
        self._read.add(made)  # it is XLA's to read
        return made

    def _details(self, address):
        kind = Details if self.minor >= 4 else Message
        arguments = kind.from_address(address)
        self._check_size("Error_GetDetails", arguments, kind)
        _, code, holder = self._errors[arguments.error]
        self._read.add(arguments.error)
        arguments.message = ctypes.addressof(holder)
        if self.minor >= 4:
            arguments.code = code

    def _destroy(self, address):
        arguments = Destroy.from_address(address)
        self._check_size("Error_Destroy", arguments, Destroy)
        if arguments.error not in self._errors:
            self.defects.append("what is no error was destroyed")
        elif arguments.error not in self._read:
            self.defects.append(f"nobody has read: {self._errors[arguments.error][0]}")
        self._errors.pop(arguments.error, None)

    def _check_size(self, name, arguments, kind):
        if arguments.size < size_of(kind):
            self.defects.append(f"{name}: expected {size_of(kind)} bytes, got {arguments.size}")

    def _in_context(self, name, kind, function):
        def call(address):
            arguments = kind.from_address(address)
            if arguments.size < size_of(kind):
                return self._error(
                    f"Unexpected XLA_FFI_{name}_Args size: expected {size_of(kind)}, got "
                    f"{arguments.size}. Check installed software versions."
                )
            if arguments.context != self.CONTEXT or not self._is_called:
                self.defects.append(f"{name}: the context is of no call")
            waiting = self.fails.get(name)
            text = waiting.pop(0) if waiting else None
            if text and kind is Free:
                del self._memory[arguments.data]  # it was given back anyway
            text = text or function(arguments)
            return self._error(text) if text else None

        return CFUNCTYPE(c_void_p, c_void_p)(call)

    def _made_api(self):
        nothing = CFUNCTYPE(None, c_void_p)
        functions = {
            "Error_Create": CFUNCTYPE(c_void_p, c_void_p)(self._create),
            "Error_GetDetails": nothing(self._details),
            "Error_Destroy": nothing(self._destroy),
            "Stream_Get": self._in_context("Stream_Get", Stream, self.stream_get),
            "DeviceOrdinal_Get": self._in_context(
                "DeviceOrdinal_Get", Ordinal, self.device_ordinal_get
            ),
            "DeviceMemory_Allocate": self._in_context(
                "DeviceMemory_Allocate", Allocate, self.device_memory_allocate
            ),
            "DeviceMemory_Free": self._in_context(
                "DeviceMemory_Free", Free, self.device_memory_free
            ),
        }
        api = Api(version=Version(ctypes.sizeof(Version), None, 0, self.minor))
        api.size = size_of(Api) if self.minor >= 4 else Api.InvokeContext_FindExtension.offset
        for name, function in functions.items():
            setattr(api, name, ctypes.cast(function, c_void_p))
        self._kept.append(functions)
        return api

    # ---- a call

    def _frame(self, text, arguments, results, stage):
        held = [text.encode()]
        name, value = Span(b"call", 4), Span(held[0], len(held[0]))
        attributes = Attributes(
            size_of(Attributes), None, 1, (c_int * 1)(4), pointers(held, [name]),
            pointers(held, [value]),
        )  # fmt: skip
        frame = Frame(
            Frame.future.offset, None, ctypes.addressof(self._api), self.CONTEXT, stage,
            buffers(held, arguments), buffers(held, results), attributes, None,
        )  # fmt: skip
        frame.held = held
        return frame


def buffers(held, arrays):
    made = [
        Buffer(
            size_of(Buffer), None, DTYPES[one.dtype.name], one.address, one.ndim,
            (c_int64 * max(one.ndim, 1))(*one.shape),
        )
        for one in arrays
    ]  # fmt: skip
    types = (c_int * max(len(made), 1))(*[1] * len(made))
    return Buffers(size_of(Buffers), None, len(made), types, pointers(held, made))


def pointers(held, structures):
    held.append(structures)
    made = (c_void_p * max(len(structures), 1))(*map(ctypes.addressof, structures))
    held.append(made)
    return made


def metadata(handler, before=None):
    """Ask a handler what it is, as XLA does before it calls it."""
    said = Metadata(ctypes.sizeof(Metadata), traits=0xFFFF)
    asked = Extension(ctypes.sizeof(Extension), 1, None, ctypes.pointer(said))
    first = asked
    if before is not None:  # another extension stands before it
        first = Extension(ctypes.sizeof(Extension), before, ctypes.addressof(asked), None)
    frame = Frame(Frame.future.offset, ctypes.addressof(first), None, None, 3)
    assert handler(ctypes.addressof(frame)) is None
    return said
