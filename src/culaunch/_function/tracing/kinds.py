"""Kinds of arguments, and the stand-ins for a call of one."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from culaunch._function.arrays.array import Root
from culaunch._launch.arrays.array import ArrayInfo, array_info
from culaunch._launch.formats.dtype import DTYPES, find_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._function.tracing.trace import TraceBody

# An entry: None, int, float, True, False, ("array", dtype number, rank, is read-only),
# ("list", entries of arrays), ("tuple", entries of arrays), ("value", object).
Entry = Any
Kind = tuple[Entry, ...]


class Arguments:
    """The stand-ins of a call's arguments, in the order of the parameters.

    Parameters
    ----------
    names : tuple[str, ...]
        The parameters'.
    kind : Kind
    values : tuple or None
        The arguments of the call. If None, shapes and numbers are made up.
    """

    def __init__(self, names: tuple[str, ...], kind: Kind, values: tuple[Any, ...] | None) -> None:
        self.names = names
        self.kind = kind
        self.values = values
        self._array = 0
        self._parameter = 0

    def stand_ins(self, body: TraceBody) -> list[Any]:
        """Make them."""
        made = []
        for index, (name, entry) in enumerate(zip(self.names, self.kind, strict=True)):
            self._parameter = index
            value = _MISSING if self.values is None else self.values[index]
            made.append(self._stand_in(body, name, entry, value))
        return made

    def _stand_in(self, body: TraceBody, name: str, entry: Entry, value: Any) -> Any:
        if entry is None or entry is True or entry is False:
            return entry
        if entry is int:
            # A number that the usual divisors of kernels divide. Without a call, it only suggests
            # the likely side of a branch.
            hint: Any = 1024 if value is _MISSING else operator.index(value)
            return body.number_argument(name, self._parameter, hint)
        if entry is float:
            number = 1.0 if value is _MISSING else float(value)
            return body.number_argument(name, self._parameter, number)
        if entry[0] == "value":
            return static(entry[1])
        if entry[0] == "array":
            return self._array_of(body, name, entry, value, -1)
        items = []
        for i, one in enumerate(entry[1]):
            item = _MISSING if value is _MISSING else value[i]
            items.append(self._array_of(body, f"{name}[{i}]", one, item, i))
        return tuple(items) if entry[0] == "tuple" else items

    def _array_of(self, body: TraceBody, name: str, entry: Entry, value: Any, element: int) -> Any:
        _, dtype, rank, is_read_only = entry
        if isinstance(value, ArrayInfo):  # a kind without a call
            facts = value
        else:
            facts = _made_up(rank) if value is _MISSING else array_info(value)
        root = Root(
            "argument",
            name,
            self._array,
            parameter=self._parameter,
            element=element,
            is_read_only=is_read_only,
        )
        root.address = facts.address
        self._array += 1
        return body.array_argument(root, dtype, facts)


def static(value: Any) -> Any:
    """Return a body's form of a value that selects the program. dtypes become culaunch's."""
    dtype = None if isinstance(value, str) else find_dtype(value)
    return value if dtype is None else dtype


def arrays(kind: Kind) -> Iterator[tuple[tuple[int, ...], Entry]]:
    """Yield the place of each array of a call, in the order of a program, and its entry.

    The place is the parameter, and for an array in a list or tuple its index there.
    """
    for parameter, entry in enumerate(kind):
        if type(entry) is not tuple or entry[0] == "value":
            continue
        if entry[0] == "array":
            yield (parameter,), entry
        else:
            yield from (((parameter, i), one) for i, one in enumerate(entry[1]))


def arrays_of(kind: Kind) -> int:
    """Return how many arrays there are."""
    return sum(1 for _ in arrays(kind))


def arrays_in(kind: Kind, values: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the arrays of a call, in the order of a program."""
    for (parameter, *index), _ in arrays(kind):
        yield values[parameter][index[0]] if index else values[parameter]


def first_array(kind: Kind, values: tuple[Any, ...]) -> Any:
    """Return a call's first array, or None. Arrays may be only described."""
    first = next(arrays_in(kind, values), None)
    return None if isinstance(first, ArrayInfo) else first


def described(entry: Entry) -> str:
    """Write an entry of a kind for readers."""
    if type(entry) is not tuple:
        return entry.__name__ if isinstance(entry, type) else str(entry)
    if entry[0] == "value":
        return repr(entry[1])
    if entry[0] == "array":
        dims = ", ".join("_" * entry[2])
        return f"{DTYPES[entry[1]].name}[{dims}]" + (", read-only" if entry[3] else "")
    return f"{entry[0]} of ({', '.join(map(described, entry[1]))})"


def key_of(kind: Kind) -> Any:
    """Return a kind as a key that distinguishes values of different types."""
    return tuple(
        # 1, 1.0 and True are equal and have the same hash, but a body distinguishes them.
        (*entry, _types(entry[1])) if type(entry) is tuple and entry[0] == "value" else entry
        for entry in kind
    )


def described_value(entry: Entry) -> Any:
    """Return a value of a kind without a call; an array is only described."""
    if entry is int or entry is float:
        return entry(4)
    if type(entry) is not tuple:
        return entry
    if entry[0] == "array":
        return _made_up(entry[2])
    return entry[1] if entry[0] == "value" else tuple(map(described_value, entry[1]))


def _types(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_types, value))
    return type(value)


_MISSING = object()


def _made_up(rank: int) -> ArrayInfo:
    """Return made-up facts of an array of a rank, with sizes that divide well."""
    shape = (4096,) * rank
    strides = tuple(4096 ** (rank - 1 - axis) for axis in range(rank))
    return ArrayInfo(0, shape, strides, 2, 32, (2, 0))
