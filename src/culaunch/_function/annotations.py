"""What a parameter's annotation says, and checking arguments against it."""

from __future__ import annotations

import re
import types
import typing
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_text
from culaunch._base.values import show, spell
from culaunch._function.arithmetic import as_float
from culaunch._function.array import StandIn
from culaunch._function.symbols import foreign_kind, is_symbolic
from culaunch._launch.dtype import DType, as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._function.bodies import Body


class Same:
    """The element type of another argument: what :func:`same` makes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"same({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.name == self.name

    def __hash__(self) -> int:
        return hash(("same", self.name))


def same(name: str) -> Same:
    """Say that an array has the element type of another argument: ``cl.Array(cl.same("x"))``.

    Parameters
    ----------
    name : str
        That argument's.
    """
    return Same(checked_text("name", name, "a str, the name of a parameter"))


class Array:
    """An array argument: its element types and its dimensions, as an annotation.

    ``x: cl.Array("float32 | bfloat16", "b n")`` takes an array of one of these types, of two
    dimensions. A name of a dimension stands for one size wherever it appears in the annotations of
    a function; a number is that size; ``_`` is any size, and ``...`` any number of dimensions.
    ``cl.Array`` alone is any array, and ``cl.Array(...) | None`` may be None. Where a type checker
    reads the annotations: ``x: Annotated[torch.Tensor, cl.Array("float32", "n")]``.

    Parameters
    ----------
    dtype : str, dtype or same, optional
        Element types, with ``|`` between them; any by default.
    dims : str, optional
        Dimensions, with spaces between them; any by default.
    """

    def __init__(self, dtype: Any = None, dims: str | None = None) -> None:
        self.dtypes = _dtypes(dtype)
        self.same = dtype.name if isinstance(dtype, Same) else None
        self.dims = None if dims is None else _dims(dims)
        self.is_optional = False

    @property
    def rank(self) -> int | None:
        """How many dimensions there are, where that is said."""
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
    """What a parameter takes, as its annotation says.

    Attributes
    ----------
    array : Array or None
        Where it takes an array.
    plain : tuple of types
        Of Python's own that it takes: int, float, bool, str.
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
    """Read an annotation; None where it says nothing that can be checked."""
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
        if any(part is None for part in parts):
            return None
        known = [part for part in parts if part is not None]
        arrays = [part.array for part in known if part.array is not None]
        if len(arrays) > 1:
            return None
        plain = tuple(kind for part in known for kind in part.plain)
        return Wanted(arrays[0] if arrays else None, plain, any(part.is_optional for part in known))
    return None


def check(
    body: Body, declared: dict[int, Wanted], names: tuple[str, ...], values: list[Any]
) -> None:
    """Check the arguments of a call against their annotations; a float's int is converted.

    Raises
    ------
    TypeError, ValueError
        With the argument's name.
    """
    bound: dict[str, tuple[str, Any]] = {}
    for index, want in declared.items():
        name, value = names[index], values[index]
        start = f"{body.name}: argument {name}"
        if value is None:
            if not want.is_optional:
                raise TypeError(f"{start} must be {_said(want)} (got None)")
        elif isinstance(value, StandIn):
            if want.array is None:
                raise TypeError(f"{start} must be {_said(want)} (got an array)")
            _check_array(body, start, name, want.array, value, names, values, bound)
        elif want.plain or want.array is not None or want.is_optional:
            values[index] = _checked_plain(start, want, value)


def _check_array(
    body: Body, start: str, name: str, want: Array, value: StandIn, names: tuple[str, ...],
    values: list[Any], bound: dict[str, tuple[str, Any]],
) -> None:  # fmt: skip
    dtype = value.dtype
    if want.dtypes is not None and dtype not in want.dtypes:
        known = " or ".join(one.name for one in want.dtypes)
        raise TypeError(f"{start} must be an array of {known} (got one of {dtype!r})")
    if want.same is not None:
        other = values[names.index(want.same)] if want.same in names else None
        if isinstance(other, StandIn) and other.dtype != dtype:
            raise TypeError(
                f"{start} must be an array of {other.dtype!r}, as {want.same} is (got one of "
                f"{dtype!r})"
            )
    if want.dims is None:
        return
    dims, shape = want.dims, value.shape
    spelled = " ".join(map(str, dims))
    if "..." in dims:
        at = dims.index("...")
        if len(shape) < len(dims) - 1:
            raise ValueError(
                f"{start} must have at least {len(dims) - 1} dimensions, {spelled} (got "
                f"{len(shape)})"
            )
        # What the dots stand for is compared with nothing: the dimensions before and behind are
        # left.
        after = len(dims) - at - 1
        shape = (*shape[:at], *shape[len(shape) - after :])
        dims = (*dims[:at], *dims[at + 1 :])
    elif len(shape) != len(dims):
        raise ValueError(f"{start} must have {_count(len(dims))}, {spelled} (got {len(shape)})")
    for dim, size in zip(dims, shape, strict=True):
        if isinstance(dim, int):
            message = _wrong_size(start, size, spelled, dim)
            body.check(size == dim, message, ValueError)
        elif dim != "_":
            # The first argument with a name says how many elements it means, and the others are
            # compared with that one, so that the error names both.
            if dim in bound:
                owner, known = bound[dim]
                body.check(size == known, _differ(name, size, dim, owner, known), ValueError)
            else:
                bound[dim] = (name, size)


def _wrong_size(start: str, size: Any, spelled: str, dim: int) -> Callable[[], str]:
    return lambda: f"{start} must have {dim} elements along {dim!r} of '{spelled}' (got {size})"


def _differ(name: str, size: Any, dim: str, owner: str, known: Any) -> Callable[[], str]:
    return lambda: f"{name} has {size} elements along {dim}, {owner} has {known}"


def _checked_plain(start: str, want: Wanted, value: Any) -> Any:
    """Return a plain argument: an int where a float is wanted becomes one."""
    kinds = want.plain
    foreign = foreign_kind(value)
    if foreign in kinds or (foreign is int and float in kinds):
        return value
    if isinstance(value, bool) and not is_symbolic(value):
        if bool in kinds:
            return value
    elif isinstance(value, int):
        if int in kinds:
            return value
        if float in kinds:
            try:
                return as_float(value)
            except OverflowError:
                raise OverflowError(
                    f"{start} is too large for a float (got {show(value)})"
                ) from None
    elif any(isinstance(value, kind) for kind in kinds):
        return value
    shown = value._shown() if hasattr(type(value), "_shown") else show(value)
    raise TypeError(f"{start} must be {_said(want)} (got {shown})")


_PLAIN = frozenset((int, float, bool, str))
_WORDS = {int: "an int", float: "a float", bool: "a bool", str: "a str"}


def _said(want: Wanted) -> str:
    words = [] if want.array is None else ["an array"]
    words += [_WORDS[kind] for kind in want.plain]
    if want.is_optional:
        words.append("None")
    return " or ".join(words)


def _count(number: int) -> str:
    return "1 dimension" if number == 1 else f"{number} dimensions"


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
                f"dims has {word!r}: a dimension is a name, a number, _ or ... (got {spell(dims)})"
            )
    if words.count("...") > 1:
        raise ValueError(f"dims has more than one ... (got {spell(dims)})")
    return tuple(words)
