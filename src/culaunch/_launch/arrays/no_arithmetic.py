"""Operators that a DeviceArray refuses, with a message that names a replacement."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "matmul": "@",
}  # fmt: skip
_COMPARING = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNARY = {"neg": "-", "abs": "abs()", "invert": "~"}


def without_arithmetic(cls: type[T]) -> type[T]:
    """Make a class refuse arithmetic with a hint. Type checkers refuse it without a hint."""
    words = {**_BINARY, **{f"r{name}": word for name, word in _BINARY.items()}, **_COMPARING}
    methods = {name: _refusing(word) for name, word in (words | _UNARY).items()}
    methods["setitem"] = _refuse_item
    for name, method in methods.items():
        setattr(cls, f"__{name}__", method)
    return cls


def _refusing(word: str) -> Callable[..., object]:
    def refuse(self: object, *others: object) -> object:
        # NumPy arrays can add a DeviceArray: they copy it to the host.
        if any(not isinstance(one, (type(self), int, float, complex)) for one in others):
            return NotImplemented
        raise TypeError(
            f"a {type(self).__name__} has no arithmetic (got {word}): write a formula with "
            "culaunch.elementwise.fuse, or use a framework's array over the same memory, such as "
            "torch.from_dlpack(array)"
        )

    return refuse


def _refuse_item(self: object, _index: object, _value: object) -> NoReturn:
    raise TypeError(
        f"a {type(self).__name__} cannot be assigned to by index: set every element with "
        "array.fill(value), or some rows with array[start:stop].copy_from(source)"
    )
