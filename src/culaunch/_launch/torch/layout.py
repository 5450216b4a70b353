"""Finds where a tensor of torch stores the values that its exchange function returns.

The exchange function costs more than everything else in a launch: three calls take 125 of the 202
ns of a launch with three tensors (docs/benchmarks.md). Its result is eight words of memory. A
search for known values finds them. csrc/arguments/torch/layout.h reads them, after it has compared
every sample with the result of the exchange function.
"""

# ruff: noqa: SLF001 - what a tensor is in memory, torch tells in private words alone

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._launch.torch.modes import without_modes
from culaunch._launch.torch.object_memory import ObjectMemory, memory_of, only
from culaunch._launch.torch.words import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip
# A tensor with more dimensions is read through the exchange function.
_MOST_DIMENSIONS = 5


class Layout(NamedTuple):
    """Offsets in bytes, the first seven in the C++ tensor, the last two in its storage.

    `readable` are tensors that are read in place, `others` are tensors that may not be. `words`
    describes the word with the kind of a tensor: pairs of its values in host memory and on a GPU.
    """

    storage: int
    storage_offset: int
    size: int
    shape: int
    strides: int
    dtype: int
    device: int
    data: int
    is_special: int
    readable: tuple[Any, ...]
    others: tuple[Any, ...]
    words: tuple[tuple[int, int], ...]


def find_layout() -> Layout | None:
    """Find the layout, or return None if one of its offsets is ambiguous."""
    try:
        with without_modes(sys.modules["torch"]):
            return _find()
    except Exception:  # noqa: BLE001 - a torch without one of these functions
        return None


def _find() -> Layout:
    torch = sys.modules["torch"]
    strided = [*_strided(torch)]
    typed = [*_typed(torch)]
    # A tensor of inference mode has other words, and must be distinguished.
    with torch.inference_mode():
        inferred = torch.zeros(2, 3)
    # Foreign memory, which has another alignment than memory from torch's allocator.
    borrowed = torch.frombuffer(bytearray(64), dtype=torch.float32)[3:]
    tensors = [*strided, *typed, inferred, borrowed]
    objects = ObjectMemory([tensor._cdata for tensor in tensors])
    storages = [tensor.untyped_storage() for tensor in tensors]
    special, byte = _special(torch)
    # The rank comes before the sizes if both are stored inline, as torch does up to five
    # dimensions.
    shape = objects.only(8, lambda read, i: read(-8) == tensors[i].dim() and _holds(
        read, tensors[i].shape))  # fmt: skip
    return Layout(
        objects.only(8, lambda read, i: read() == storages[i]._cdata),
        objects.only(8, lambda read, i: read() == tensors[i].storage_offset()),
        objects.only(8, lambda read, i: read() == tensors[i].numel()),
        shape,
        objects.only(8, lambda read, i: _holds(read, tensors[i].stride())),
        _dtype_place(objects, len(strided), typed),
        _device_place(torch, objects),
        # The allocator's own pointer may be equal, but differs for borrowed memory.
        ObjectMemory([storage._cdata for storage in storages]).only(
            8, lambda read, i: read() == storages[i].data_ptr()
        ),
        byte,
        tuple(tensors),
        (*special, *_unreadable(torch)),
        tuple({words_of(torch, tensor) for tensor in (strided[0], inferred)}),
    )


def _strided(torch: Any) -> Iterable[Any]:
    """Make tensors whose sizes, strides and offsets are unique numbers in their memory."""
    memory = torch.zeros(4096, device=torch.device("cpu"))
    sizes, strides = (7, 5, 3, 11, 13), (29, 23, 19, 17, 31)
    for n in range(_MOST_DIMENSIONS + 1):
        yield memory.as_strided(sizes[:n], strides[:n], 131 + n)
    yield memory.as_strided((37, 41), (1, 43), 1009)


def _typed(torch: Any) -> Iterable[Any]:
    """Make two tensors of every type that is read in place."""
    for name in _DTYPES:
        if hasattr(torch, name):
            for n in (4, 9):
                yield torch.zeros(n, dtype=getattr(torch, name), device=torch.device("cpu"))


def _dtype_place(objects: ObjectMemory, first: int, typed: list[Any]) -> int:
    """Return the offset of two bytes that are equal for one type, and different between types."""
    pairs = range(first, first + len(typed), 2)

    def is_number_of_type(offset: int) -> bool:
        seen = set()
        for i in pairs:
            number = objects.read(i, offset, "<H")
            if number in seen or number != objects.read(i + 1, offset, "<H"):
                return False
            seen.add(number)
        return True

    return only(filter(is_number_of_type, objects.offsets(2)))


def _device_place(torch: Any, objects: ObjectMemory) -> int:
    """Return the offset of the device's kind (0 for a CPU), with the index beside it (-1: none)."""
    tensor = torch.zeros(3, device="meta")
    meta = ObjectMemory([tensor._cdata])
    return only(
        offset
        for offset in objects.offsets(2)
        if all(objects.read(i, offset, "<H") == 0xFF00 for i in range(len(objects)))
        and 0xFF00 < meta.read(0, offset, "<H") < 0xFFFF
    )


def _special(torch: Any) -> tuple[list[Any], int]:
    """Make tensors that must be asked for their address, and find the byte that shows this.

    These are copy-on-write and read-only tensors. The same byte is set in both.
    """
    lazy, guarded = torch.zeros(3), torch.zeros(3)
    before = [_storage_bytes(lazy), _storage_bytes(guarded)]
    copy = torch._lazy_clone(lazy)
    torch._C._set_throw_on_mutable_data_ptr(guarded)
    after = [_storage_bytes(lazy), _storage_bytes(guarded)]
    size = min(map(len, before + after))
    byte = only(
        offset
        for offset in range(size)
        if all(b[offset] == 0 and a[offset] == 1 for b, a in zip(before, after, strict=True))
    )
    return [lazy, copy, guarded], byte


def _unreadable(torch: Any) -> tuple[Any, ...]:
    z = torch.zeros(3, 4, dtype=torch.complex64)
    return (
        z.conj(),
        z.conj().imag,
        torch._neg_view(torch.zeros(3)),
        torch.zeros(0, 3),
        torch.zeros(3)[:0],
        torch.zeros(3, device="meta"),
        torch.zeros((1,) * (_MOST_DIMENSIONS + 1)),
        torch.eye(2).to_sparse(),
    )


def _holds(read: Callable[..., int], numbers: tuple[int, ...]) -> bool:
    return all(read(8 * i) == number for i, number in enumerate(numbers))


def _storage_bytes(tensor: Any) -> bytes:
    return memory_of(tensor.untyped_storage()._cdata)
