"""Annotations of parameters, as data."""

from __future__ import annotations

import re
import types
import typing
from typing import Any

from culaunch._base.checks import checked_text
from culaunch._base.values import spell
from culaunch._launch.formats.dtype import DType, as_dtype


class Same:
    """The element type of another argument: made by :func:`culaunch.dtype_of`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"dtype_of({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.name == self.name

    def __hash__(self) -> int:
        return hash(("same", self.name))


def dtype_of(name: str) -> Same:
    """Say that an array has the element type of another argument: ``cl.Array(cl.dtype_of("x"))``.

    Parameters
    ----------
    name : str
        That argument's.

    Returns
    -------
    object
        A value for the first argument of :class:`Array`.

    Examples
    --------
    >>> @cl.function
    ... def add(x: cl.Array("float32 | float16"), y: cl.Array(cl.dtype_of("x"))):
    ...     return None
    >>> add(x, cl.zeros(256, "float16"))
    Traceback (most recent call last):
        ...
    TypeError: ...
    """
    return Same(checked_text("name", name, "a str, the name of a parameter"))


class Array:
    """An array argument: its element types and its dimensions, as an annotation.

    ``x: cl.Array("float32 | bfloat16", "b n")`` accepts a two-dimensional array of one of these
    types. A dimension's name stands for the same size everywhere in a function's annotations. A
    number is that size, ``_`` is any size, and ``...`` any number of dimensions. A bare
    ``cl.Array`` accepts any array, and ``cl.Array(...) | None`` also accepts None. For type
    checkers, write ``x: Annotated[torch.Tensor, cl.Array("float32", "n")]``.

    Parameters
    ----------
    dtype : str, dtype or dtype_of, optional
        Element types, separated by ``|``; any type by default.
    dims : str, optional
        Dimensions, separated by spaces; any number by default.

    Examples
    --------
    >>> @cl.function
    ... def add(x: cl.Array("float32", "n"), y: cl.Array(cl.dtype_of("x"), "n")):
    ...     z = cl.empty_like(x)
    ...     module["add"][cl.ceildiv(x.size, 256), 256](z, x, y, x.size)
    ...     return z
    >>> add(x, cl.zeros(10))
    Traceback (most recent call last):
        ...
    ValueError: ...
    """

    def __init__(self, dtype: Any = None, dims: str | None = None) -> None:
        self.dtypes = _dtypes(dtype)
        self.same = dtype.name if isinstance(dtype, Same) else None
        self.dims = None if dims is None else _dims(dims)
        self.is_optional = False

    @property
    def rank(self) -> int | None:
        """The number of dimensions, if the annotation sets it."""
        return None if self.dims is None or "..." in self.dims else len(self.dims)

    def __or__(self, other: object) -> Array:
        if other is not None and other is not type(None):
            return NotImplemented
        made = Array.__new__(Array)
        made.__dict__.update(self.__dict__)
        made.is_optional = True
        return made

    __ror__ = __or__

    def __repr__(self) -> str:
        parts = []
        if self.same is not None:
            parts.append(repr(Same(self.same)))
        elif self.dtypes is not None:
            parts.append(repr(" | ".join(dtype.name for dtype in self.dtypes)))
        if self.dims is not None:
            text = repr(" ".join(map(str, self.dims)))
            parts.append(text if parts else f"dims={text}")
        text = f"Array({', '.join(parts)})" if parts else "Array"
        return text + (" | None" if self.is_optional else "")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Array) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class Wanted:
    """The values that a parameter accepts according to its annotation.

    Attributes
    ----------
    array : Array or None
        Set if it accepts an array.
    plain : tuple of types
        The Python types that it accepts: int, float, bool, str.
    is_optional : bool
        Whether it may be None.
    """

    def __init__(self, array: Array | None, plain: tuple[type, ...], is_optional: bool) -> None:
        self.array = array
        self.plain = plain
        self.is_optional = is_optional

    def text(self) -> str:
        """Write it as an annotation."""
        words = [] if self.array is None else [repr(self.array)]
        words += [kind.__name__ for kind in self.plain]
        if self.is_optional and not (self.array is not None and self.array.is_optional):
            words.append("None")
        return " | ".join(words)


def wanted(annotation: Any) -> Wanted | None:
    """Read an annotation. None if it contains nothing that can be checked."""
    if annotation is Array:
        return Wanted(Array(), (), is_optional=False)
    if isinstance(annotation, Array):
        return Wanted(annotation, (), annotation.is_optional)
    if annotation in _PLAIN:
        return Wanted(None, (annotation,), is_optional=False)
    if annotation is None or annotation is type(None):
        return Wanted(None, (), is_optional=True)
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        found = next((one for one in annotation.__metadata__ if isinstance(one, Array)), None)
        return wanted(annotation.__origin__ if found is None else found)
    if origin in (typing.Union, types.UnionType):
        parts = [wanted(one) for one in typing.get_args(annotation)]
        # A union with an unknown type cannot be checked, because any value may be of that type.
        if any(part is None for part in parts):
            return None
        known = [part for part in parts if part is not None]
        arrays = [part.array for part in known if part.array is not None]
        # With two kinds of arrays, an error could not say which one was meant.
        if len(arrays) > 1:
            return None
        plain = tuple(kind for part in known for kind in part.plain)
        return Wanted(arrays[0] if arrays else None, plain, any(part.is_optional for part in known))
    return None


_PLAIN = frozenset((int, float, bool, str))


def _dtypes(dtype: Any) -> tuple[DType, ...] | None:
    if dtype is None or isinstance(dtype, Same):
        return None
    if isinstance(dtype, str):
        return tuple(as_dtype(word.strip()) for word in dtype.split("|"))
    return (as_dtype(dtype),)


def _dims(dims: Any) -> tuple[int | str, ...]:
    text = checked_text("dims", dims, "a str of dimensions, such as 'b n'")
    words: list[int | str] = []
    for word in text.replace(",", " ").split():
        if word.isdigit():
            words.append(int(word))
        elif re.fullmatch(r"[A-Za-z_]\w*|\.\.\.", word):
            words.append(word)
        else:
            raise ValueError(
                f"each dimension in dims must be a name, a number, _ or ... (got {word!r} in "
                f"{spell(dims)})"
            )
    if words.count("...") > 1:
        raise ValueError(f"dims must have at most one ... (got {spell(dims)})")
    return tuple(words)
