"""Arrays that live nowhere: every protocol, any device, any address."""

from __future__ import annotations

import ctypes


def address_of(data: bytes) -> int:
    """Return the address that a launch was given."""
    return int.from_bytes(data, "little")


class DLDevice(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = (("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


class ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


# By index, each use gets a function of its own: other packages set the types of the attribute.
_new_capsule = ctypes.pythonapi["PyCapsule_New"]
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

FLOAT32 = (2, 32)
SHAPE, STRIDES = (ctypes.c_int64 * 1)(4), (ctypes.c_int64 * 1)(1)


class Array:
    """The array of the classes below: four elements at an address of a device."""

    def __init__(self, address=0x7000, device=0, dtype=FLOAT32, kind=2, stream=0, offset=0):
        self.address = address
        self.device = device
        self.dtype = dtype
        self.kind = kind
        self.stream = stream
        self.offset = offset
        self.asked = []  # the arguments of each export

    def tensor(self):
        device, dtype = DLDevice(self.kind, self.device), DLDataType(*self.dtype, 1)
        return DLTensor(self.address, device, 1, dtype, SHAPE, STRIDES, self.offset)


class DlpackArray(Array):
    """``__dlpack__`` of the current form."""

    def __dlpack_device__(self):
        return (self.kind, self.device)

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append((stream, max_version))
        self.managed = ManagedVersioned(1, 0, None, _DELETER(), 0, self.tensor())
        return _new_capsule(ctypes.addressof(self.managed), b"dltensor_versioned", None)


class OldDlpackArray(DlpackArray):
    """``__dlpack__`` from before ``max_version``."""

    def __dlpack__(self, stream=None):
        self.asked.append((stream, None))
        self.managed = Managed(self.tensor(), None, _DELETER())
        return _new_capsule(ctypes.addressof(self.managed), b"dltensor", None)


class CudaInterfaceArray(Array):
    """Only ``__cuda_array_interface__``, version 3."""

    @property
    def __cuda_array_interface__(self):
        self.asked.append(None)
        return {
            "shape": (4,),
            "typestr": "<f4",
            "data": (self.address, False),
            "strides": None,
            "stream": self.stream or None,
            "version": 3,
        }


class _ExchangeApi(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("to_managed", ctypes.c_void_p),
        ("from_managed", ctypes.c_void_p),
        ("view", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)),
        (
            "stream",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p),
        ),
    )


def make_exchange_array(major=1):
    """Make a class with the C exchange API; ``current`` is its framework's current stream."""

    class ExchangeArray(Array):
        current = 0
        asked_streams: list[tuple[int, int]] = []  # noqa: RUF012

    def view(array, out):
        ctypes.memmove(out, ctypes.byref(array.tensor()), ctypes.sizeof(DLTensor))
        return 0

    def stream(kind, device, out):
        ExchangeArray.asked_streams.append((kind, device))
        ctypes.c_void_p.from_address(out).value = ExchangeArray.current
        return 0

    fields = dict(_ExchangeApi._fields_)
    api = _ExchangeApi(
        major, 1, None, None, None, None, fields["view"](view), fields["stream"](stream)
    )
    ExchangeArray.api = api
    ExchangeArray.__dlpack_c_exchange_api__ = _new_capsule(
        ctypes.addressof(api), b"dlpack_exchange_api", None
    )
    return ExchangeArray


ExchangeArray = make_exchange_array()
