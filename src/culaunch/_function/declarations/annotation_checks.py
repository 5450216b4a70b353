"""The arguments of a call, checked against the annotations of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.values import counted, show
from culaunch._function.arrays.array import StandIn
from culaunch._function.symbolic.arithmetic import as_float
from culaunch._function.symbolic.symbols import foreign_kind, is_symbolic

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._function.body.bodies import Body
    from culaunch._function.declarations.annotations import Array, Wanted


def check(
    body: Body, declared: dict[int, Wanted], names: tuple[str, ...], values: list[Any]
) -> None:
    """Check the arguments of a call against their annotations. An int for a float is converted."""
    bound: dict[str, tuple[str, Any]] = {}
    for index, want in declared.items():
        name, value = names[index], values[index]
        start = f"{body.name}: argument {name}"
        if value is None:
            if not want.is_optional:
                raise TypeError(f"{start} must be {_expected(want)} (got None)")
        elif isinstance(value, StandIn):
            if want.array is None:
                raise TypeError(f"{start} must be {_expected(want)} (got an array)")
            _check_array(body, start, name, want.array, value, names, values, bound)
        # An annotation that names nothing checkable lets any plain value pass.
        elif want.plain or want.array is not None or want.is_optional:
            values[index] = _checked_plain(start, want, value)


def _check_array(
    body: Body, start: str, name: str, want: Array, value: StandIn, names: tuple[str, ...],
    values: list[Any], bound: dict[str, tuple[str, Any]],
) -> None:  # fmt: skip
    dtype = value.dtype
    if want.dtypes is not None and dtype not in want.dtypes:
        known = " or ".join(one.name for one in want.dtypes)
        raise TypeError(f"{start} must be an array of {known} (got an array of {dtype!r})")
    if want.same is not None:
        other = values[names.index(want.same)] if want.same in names else None
        if isinstance(other, StandIn) and other.dtype != dtype:
            raise TypeError(
                f"{start} must have the element type of {want.same}, {other.dtype!r} (got "
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
                f"{start} must have at least {counted(len(dims) - 1, 'dimension')}, {spelled} (got "
                f"{len(shape)})"
            )
        # Only the dimensions before and after the dots are checked.
        after = len(dims) - at - 1
        shape = (*shape[:at], *shape[len(shape) - after :])
        dims = (*dims[:at], *dims[at + 1 :])
    elif len(shape) != len(dims):
        raise ValueError(
            f"{start} must have {counted(len(dims), 'dimension')}, {spelled} (got {len(shape)})"
        )
    for dim, size in zip(dims, shape, strict=True):
        if isinstance(dim, int):
            message = _wrong_size(start, size, spelled, dim)
            body.check(size == dim, message, ValueError)
        elif dim != "_":
            # The first argument that uses a name defines its size. The others are compared with
            # that argument, and the error names both.
            if dim in bound:
                owner, known = bound[dim]
                body.check(size == known, _differ(name, size, dim, owner, known), ValueError)
            else:
                bound[dim] = (name, size)


def _wrong_size(start: str, size: Any, spelled: str, dim: int) -> Callable[[], str]:
    return lambda: (
        f"{start} must have {counted(dim, 'element')} along {dim!r} of '{spelled}' (got {size})"
    )


def _differ(name: str, size: Any, dim: str, owner: str, known: Any) -> Callable[[], str]:
    return lambda: f"{name} has {size} elements along {dim}, but {owner} has {known}"


def _checked_plain(start: str, want: Wanted, value: Any) -> Any:
    """Return a plain argument. An int for a float parameter is converted."""
    kinds = want.plain
    foreign = foreign_kind(value)
    # A framework's symbol has no value, so its kind decides.
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
    # A stand-in describes its value; its repr would show the inside of a trace.
    shown = value._shown() if hasattr(type(value), "_shown") else show(value)
    raise TypeError(f"{start} must be {_expected(want)} (got {shown})")


_WORDS = {int: "an int", float: "a float", bool: "a bool", str: "a str"}


def _expected(want: Wanted) -> str:
    words = [] if want.array is None else ["an array"]
    words += [_WORDS[kind] for kind in want.plain]
    if want.is_optional:
        words.append("None")
    return " or ".join(words)
