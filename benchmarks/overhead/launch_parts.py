"""The parts of culaunch's launch, each measured separately.

Torch's half of DLPack's C exchange API, the GIL, and Python's own loop.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from overhead.cases import GRID
from overhead.timing import python_burst

if TYPE_CHECKING:
    from collections.abc import Callable

    from overhead.bench import Bench
    from overhead.cases import Case
    from overhead.ours import Made
    from overhead.timing import Burst

EXCHANGE = "exchange function, per torch tensor"
WORK_STREAM = "exchange API's current_work_stream (torch)"

GIL = "releasing and acquiring the GIL"
LOOP = "Python's for loop"
PARTS = {"exchange": EXCHANGE, "work_stream": WORK_STREAM, "gil": GIL, "loop": LOOP}
"""Measurements beside the launches, by their keys in the report's costs."""

_CAPSULE = "__dlpack_c_exchange_api__"


class ExchangeApi(ctypes.Structure):
    """DLPackExchangeAPI of dlpack.h 1.3: the version, the chain, and five functions."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("managed_tensor_allocator", ctypes.c_void_p),
        ("managed_tensor_from_py_object_no_sync", ctypes.c_void_p),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p),
        ("dltensor_from_py_object_no_sync", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    )


def exchange(bench: Bench) -> Callable[[Case], Made]:
    tensors = bench.tensors[:16]
    api = _api(type(tensors[0]))
    objects = (ctypes.c_void_p * len(tensors))(*(id(tensor) for tensor in tensors))
    loop, function = bench.twin.twin_exchange, api.dltensor_from_py_object_no_sync
    if not function:
        raise RuntimeError("torch's exchange API has no dltensor_from_py_object_no_sync")

    def burst(count: int) -> int:
        # A burst is so many calls of it; the objects take turns, as a launch's arguments do.
        rounds = -(-count // len(tensors))
        nanoseconds = int(loop(function, objects, len(tensors), rounds))
        return nanoseconds * count // (rounds * len(tensors))

    return _fixed(burst)


def work_stream(bench: Bench) -> Callable[[Case], Made]:
    tensor = bench.tensors[0]
    api = _api(type(tensor))
    device_type, device = (1, 0) if bench.host_only else (2, tensor.device.index)
    loop, function = bench.twin.twin_work_stream, api.current_work_stream

    def burst(count: int) -> int:
        return int(loop(function, device_type, device, count))

    return _fixed(burst)


def least(bench: Bench, case: Case, function: Any, params: Any, block: int) -> Burst:
    """Make a burst of the minimum work of any launch of a case from Python, in a loop in C."""
    tensors = bench.tensors[: case.pointers]
    api = _api(type(bench.tensors[0]))
    objects = (ctypes.c_void_p * len(tensors))(*(id(tensor) for tensor in tensors))
    exchange, look_up = api.dltensor_from_py_object_no_sync, api.current_work_stream
    stream = None if bench.host_only else look_up
    loop, gil_calls = bench.twin.twin_least, _gil_calls()

    launch = (function, params, GRID, block, bench.stream)

    def burst(count: int) -> int:
        return int(loop(*launch, exchange, objects, len(tensors), stream, *gil_calls, count))

    return burst


def gil(bench: Bench) -> Callable[[Case], Made]:
    save, restore = _gil_calls()
    twin_gil = bench.twin.twin_gil

    def burst(count: int) -> int:
        return int(twin_gil(save, restore, count))

    return _fixed(burst)


def loop(bench: Bench) -> Callable[[Case], Made]:
    del bench
    return _fixed(python_burst("pass"))


def _fixed(burst: Burst) -> Callable[[Case], Made]:
    def make(case: Case) -> Made:
        del case  # no kernel is involved
        return burst, None

    return make


def _gil_calls() -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    save, restore = (
        ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)
        for name in ("PyEval_SaveThread", "PyEval_RestoreThread")
    )
    return save, restore


def _api(kind: type) -> Any:
    capsule = getattr(kind, _CAPSULE, None)
    if capsule is None:
        raise RuntimeError(f"{kind.__module__}.{kind.__name__} has no {_CAPSULE}")
    pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ExchangeApi.from_address(pointer(capsule, b"dlpack_exchange_api"))
