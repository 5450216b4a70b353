"""Tensors of torch whose memory is not what they show. The extension calls this."""

# ruff: noqa: SLF001 - what a tensor is without its memory, torch tells in private words alone

from __future__ import annotations

import sys
from itertools import chain
from typing import Any

from culaunch._base.values import type_name


def find_bits() -> tuple[int, int, int, int] | None:
    """Find where torch keeps the bits of a lazy conjugate and a lazy negative.

    Return the offset in a tensor's Python object of the pointer to the C++ tensor, the offset
    there of a word, the two bits in it, and the offset there of a pointer that is null in a tensor
    that does not require grad (0: not found). They are found by comparing tensors that differ in
    nothing else, and hold for every one of a list of tensors of all kinds, or None is returned:
    also where a mode of torch's is on that makes other tensors than the plain ones asked for.
    """
    try:
        groups = sample_tensors()
    except Exception:  # noqa: BLE001 - a mode, or a torch without one of these functions
        return None
    tensors = [*chain.from_iterable(groups)]
    pointers = [
        offset
        for offset in range(16, min(map(_basic_size, tensors)) - 7, 8)
        if all(_word(id(tensor) + offset) == tensor._cdata for tensor in tensors)
    ]
    if len(pointers) != 1:
        return None
    size = min(_usable_size(tensor._cdata) for tensor in tensors)
    found = [
        (offset, conjugate | negative)
        for offset in range(0, size - 7, 8)
        for conjugate, negative in [_bits_at(groups, offset)]
        if conjugate != negative
        and all(
            bool(_word(tensor._cdata + offset) & bit) == expected
            for tensor in tensors
            for bit, expected in ((conjugate, tensor.is_conj()), (negative, tensor.is_neg()))
        )
    ]
    return (pointers[0], *found[0], _gradient_at(groups, size)) if len(found) == 1 else None


def is_lazy(tensor: Any) -> bool:
    """Ask a tensor whether it is a lazy conjugate or a lazy negative of its memory."""
    return bool(tensor.is_conj() or tensor.is_neg())


def check_gradient(what: str) -> None:
    """Refuse a tensor that requires grad where torch records what is done to it.

    Raises
    ------
    TypeError
        If it records; `what` names the argument.
    """
    if sys.modules["torch"].is_grad_enabled():
        raise TypeError(
            f"{what} requires grad, and the function has no derivative, so that its result "
            "would be a constant to autograd: pass tensor.detach(), call it under "
            "torch.no_grad(), or in a torch.autograd.Function that has the derivative"
        )


def refusal(what: str, tensor: Any) -> str:
    """Say why a tensor is no argument; `what` names the argument."""
    problem, remedy = _problem(tensor)
    return (
        f"{what} must have memory that holds what it shows (got a {type_name(tensor)} that "
        f"{problem}): {remedy}"
    )


def _problem(tensor: Any) -> tuple[str, str]:
    for name, problem, remedy in _PROBLEMS:
        if _says(tensor, name):
            return problem, remedy
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout != "torch.strided":
        return f"has the layout {layout}", "pass the dense tensors that it consists of"
    torch = sys.modules["torch"]
    if isinstance(tensor, _class("torch._subclasses.fake_tensor", "FakeTensor")):
        return "is fake: it has a shape and a type, and no data", "pass a tensor with data"
    if _says(torch._C._functorch, "is_functorch_wrapped_tensor", tensor):
        return (
            "belongs to a transformation, such as vmap or grad, and has no memory of its own",
            "make the launch an operator (torch.library.custom_op) with rules for them",
        )
    try:
        tensor.__dlpack__()
    except Exception as error:  # noqa: BLE001 - torch's own word, without its trace
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return f"torch does not export: {reason}", "pass a dense tensor of a plain type"
    return "has no memory, or has freed it", "pass a tensor with data"


_PROBLEMS = (
    (
        "is_conj",
        "is a lazy conjugate: its memory holds the numbers that are not conjugated",
        "pass tensor.resolve_conj()",
    ),
    (
        "is_neg",
        "is a lazy negative: its memory holds the numbers with the other sign",
        "pass tensor.resolve_neg()",
    ),
    ("is_meta", "is on the meta device: it has a shape, and no data", "pass a tensor with data"),
    ("is_quantized", "is quantised", "pass tensor.int_repr() and the scale, or dequantize()"),
    ("is_nested", "is nested", "pass the dense tensors that it consists of"),
)


def _says(owner: Any, name: str, *args: Any) -> bool:
    try:
        value = getattr(owner, name)
        return bool(value(*args) if callable(value) else value)
    except Exception:  # noqa: BLE001 - no answer is no
        return False


def _class(module: str, name: str) -> Any:
    """Return a class of a module that is loaded, else an empty tuple: nothing is one of it."""
    return getattr(sys.modules.get(module), name, ())


# ---- finding the bits


def sample_tensors() -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Make plain tensors, the same ones conjugated, the same ones negated, and others."""
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

    Return the same number twice where they differ in nothing, in more, or not in the same.
    """
    plain, conjugates, negatives, _ = (
        [_word(tensor._cdata + offset) for tensor in group] for group in groups
    )
    bits = []
    for words in (conjugates, negatives):
        changed = {word ^ base for word, base in zip(words, plain, strict=True)}
        bit = changed.pop()
        if changed or bit.bit_count() != 1:
            return 0, 0
        bits.append(bit)
    return bits[0], bits[1]


def _gradient_at(groups: tuple[list[Any], ...], size: int) -> int:
    """Return where fresh tensors have a null pointer, and those that require grad another.

    Views and others may have a pointer there, too: then the tensor is asked. 0 is returned where
    no word is like that, or more than one.
    """
    torch = sys.modules["torch"]
    without = groups[0]
    try:
        leaves = [torch.zeros_like(tensor, requires_grad=True) for tensor in without]
        with torch.enable_grad():
            tracked = [*leaves, *(leaf * 2 for leaf in leaves)]
        if not all(t.requires_grad for t in tracked) or any(t.requires_grad for t in without):
            return 0
    except Exception:  # noqa: BLE001 - a mode, such as inference
        return 0
    size = min([size, *(_usable_size(tensor._cdata) for tensor in tracked)])
    found = [
        offset
        for offset in range(8, size - 7, 8)
        if all(_word(tensor._cdata + offset) == 0 for tensor in without)
        and all(_word(tensor._cdata + offset) != 0 for tensor in tracked)
    ]
    return found[0] if len(found) == 1 else 0


def _basic_size(tensor: Any) -> int:
    return type(tensor).__basicsize__


def _word(address: int) -> int:
    import ctypes

    return ctypes.c_uint64.from_address(address).value


def _usable_size(address: int) -> int:
    """Return how many bytes of a C++ object may be read: the allocator knows."""
    import ctypes

    usable_size = ctypes.CDLL(None).malloc_usable_size
    usable_size.argtypes, usable_size.restype = (ctypes.c_void_p,), ctypes.c_size_t
    return int(usable_size(address))
