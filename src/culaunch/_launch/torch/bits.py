"""Finding where torch keeps the bits of a lazy conjugate and of a lazy negative."""

# ruff: noqa: SLF001 - what a tensor is in memory, torch tells in private words alone

from __future__ import annotations

import sys
from itertools import chain
from typing import Any

from culaunch._launch.torch.modes import watch, without_modes
from culaunch._launch.torch.object_memory import usable_size, word_at


def find_bits() -> tuple[int, int, int, int, dict[str, Any]] | None:
    """Find where torch keeps the bits of a lazy conjugate and a lazy negative.

    Return the offset in a tensor's Python object of the pointer to the C++ tensor, the offset of a
    word in that tensor, and the two bits in the word. Return also the offset of a pointer that is
    null in a tensor that does not require grad (0: not found). The last item is the namespace of
    torch's module that shows whether a level of forward-mode gradients is open. The search compares
    tensors with no other differences. The result must hold for a list of tensors of all kinds;
    otherwise return None.
    """
    watch()
    with without_modes(sys.modules["torch"]):
        try:
            groups = sample_tensors()
        except Exception:  # noqa: BLE001 - a torch without one of these functions
            return None
        return _find_in(groups)


def _find_in(
    groups: tuple[list[Any], ...],
) -> tuple[int, int, int, int, dict[str, Any]] | None:
    tensors = [*chain.from_iterable(groups)]
    # The Python object has one word with the address of the C++ tensor, after the two words of
    # every object.
    pointers = [
        offset
        for offset in range(16, min(map(_basic_size, tensors)) - 7, 8)
        if all(word_at(id(tensor) + offset) == tensor._cdata for tensor in tensors)
    ]
    if len(pointers) != 1:
        return None
    # Read nothing beyond the size that the allocator reports for the object.
    size = min(usable_size(tensor._cdata) for tensor in tensors)
    found = [
        (offset, conjugate | negative)
        for offset in range(0, size - 7, 8)
        for conjugate, negative in [_bits_at(groups, offset)]
        if conjugate != negative
        and all(
            bool(word_at(tensor._cdata + offset) & bit) == expected
            for tensor in tensors
            for bit, expected in ((conjugate, tensor.is_conj()), (negative, tensor.is_neg()))
        )
    ]
    if len(found) != 1:
        return None
    forward_ad = vars(sys.modules["torch"].autograd.forward_ad)
    return pointers[0], *found[0], _gradient_at(groups, size), forward_ad


def sample_tensors() -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Make plain tensors, their conjugates, their negatives, and others."""
    torch = sys.modules["torch"]
    cpu = torch.device("cpu")
    plain = [
        torch.zeros(shape, dtype=dtype, device=cpu)
        for shape in ((), (3,), (2, 3))
        for dtype in (torch.complex64, torch.complex128)
    ]
    conjugates = [tensor.conj() for tensor in plain]
    negatives = [torch._neg_view(tensor) for tensor in plain]
    number = torch.ones(4, dtype=torch.float32, device=cpu)
    others = [
        number,
        torch._neg_view(number),
        number[1:],
        torch.ones(4, dtype=torch.int8, device=cpu),
        torch.nn.Parameter(number),
        conjugates[1].imag,
        conjugates[1].real,
        conjugates[1].resolve_conj(),
        torch._neg_view(conjugates[2]),
        torch._neg_view(negatives[2]),
        conjugates[2].conj(),
    ]
    return plain, conjugates, negatives, others


def _bits_at(groups: tuple[list[Any], ...], offset: int) -> tuple[int, int]:
    """Return the single bits in which the conjugates and the negatives differ from plain tensors.

    Return the same number twice if the difference is not exactly one common bit.
    """
    plain, conjugates, negatives, _ = (
        [word_at(tensor._cdata + offset) for tensor in group] for group in groups
    )
    bits = []
    for words in (conjugates, negatives):
        # It must be the same single bit in every pair. Otherwise something else differs.
        changed = {word ^ base for word, base in zip(words, plain, strict=True)}
        bit = changed.pop()
        if changed or bit.bit_count() != 1:
            return 0, 0
        bits.append(bit)
    return bits[0], bits[1]


def _gradient_at(groups: tuple[list[Any], ...], size: int) -> int:
    """Return where fresh tensors have a null pointer, and those that require grad another.

    Views and others may also have a pointer there, and are then asked. Return 0 unless exactly one
    word fits.
    """
    without = groups[0]
    tracked: list[Any] = []
    # A word behind the tensor can fit by chance: more tensors tell it apart.
    for _ in range(3):
        try:
            tracked += _tracked_like(without)
        except Exception:  # noqa: BLE001 - such as in inference mode
            return 0
        if not all(t.requires_grad for t in tracked) or any(t.requires_grad for t in without):
            return 0
        size = min([size, *(usable_size(tensor._cdata) for tensor in tracked)])
        found = [
            offset
            for offset in range(8, size - 7, 8)
            if all(word_at(tensor._cdata + offset) == 0 for tensor in without)
            and all(word_at(tensor._cdata + offset) != 0 for tensor in tracked)
        ]
        if len(found) <= 1:
            break
    return found[0] if len(found) == 1 else 0


def _tracked_like(tensors: list[Any]) -> list[Any]:
    torch = sys.modules["torch"]
    leaves = [torch.zeros_like(tensor, requires_grad=True) for tensor in tensors]
    with torch.enable_grad():
        return [*leaves, *(leaf * 2 for leaf in leaves)]


def _basic_size(tensor: Any) -> int:
    return type(tensor).__basicsize__
