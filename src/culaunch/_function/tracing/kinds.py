"""Kinds of arguments, and the stand-ins of a call of one."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from culaunch._function.arrays.array import Root
from culaunch._launch.arrays.array import ArrayInfo, array_info
from culaunch._launch.formats.dtype import DTYPES, find_dtype

if TYPE_CHECKING:
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
        What the call passed; None: nothing, and shapes and numbers are made up.
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
            # A number that is divisible by the usual divisors of kernels. Without a call, it only
            # suggests the likely side of a branch.
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
    """Return what a body sees of a value that chooses the program: a framework's dtype is ours."""
    dtype = None if isinstance(value, str) else find_dtype(value)
    return value if dtype is None else dtype


def arrays_of(kind: Kind) -> int:
    """Return how many arrays there are."""
    return sum(
        1 if entry[0] == "array" else len(entry[1])
        for entry in kind
        if type(entry) is tuple and entry[0] != "value"
    )


def first_array(kind: Kind, values: tuple[Any, ...]) -> Any:
    """Return the first array of a call, or None; also where its arrays are only described."""
    for entry, value in zip(kind, values, strict=True):
        if type(entry) is tuple and entry[0] != "value":
            if not entry[1] and entry[0] == "list":
                continue
            first = value if entry[0] == "array" else value[0]
            return None if isinstance(first, ArrayInfo) else first
    return None


def described(entry: Entry) -> str:
    """Write an entry of a kind as it is read."""
    if type(entry) is not tuple:
        return entry.__name__ if isinstance(entry, type) else str(entry)
    if entry[0] == "value":
        return repr(entry[1])
    if entry[0] == "array":
        dims = ", ".join("_" * entry[2])
        return f"{DTYPES[entry[1]].name}[{dims}]" + (", read-only" if entry[3] else "")
    return f"{entry[0]} of ({', '.join(map(described, entry[1]))})"


def key_of(kind: Kind) -> Any:
    """Return a kind as a key: values of different types are not the same."""
    return tuple(
        # 1, 1.0 and True are equal and have one hash, and a body tells them apart.
        (*entry, _types(entry[1])) if type(entry) is tuple and entry[0] == "value" else entry
        for entry in kind
    )


def described_value(entry: Entry) -> Any:
    """Return a value of a kind, where no call is made: an array is only described."""
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
    """Return facts of an array of a rank: of sizes that divide well."""
    shape = (4096,) * rank
    strides = tuple(4096 ** (rank - 1 - axis) for axis in range(rank))
    return ArrayInfo(0, shape, strides, 2, 32, (2, 0))
