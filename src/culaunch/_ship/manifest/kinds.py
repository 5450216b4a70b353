"""Kinds of arguments in a manifest, and their form in lookups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.values import counted
from culaunch._function.tracing.kinds import key_of as exact_key
from culaunch._launch.formats.dtype import BY_NAME, DTYPES
from culaunch._ship.manifest.values import read_value, settled, write_value

if TYPE_CHECKING:
    from culaunch._function.tracing.kinds import Entry, Kind

_MOST_DIMENSIONS = 32
_MOST_ARRAYS = 4096


def write_kind(kind: Kind) -> list[Any]:
    """Return a kind as JSON, without the read-only flags of arrays."""
    return [_write_entry(entry) for entry in kind]


def read_kind(data: Any, count: int) -> Kind:
    """Read a kind that :func:`write_kind` wrote, for a number of parameters.

    Raise ValueError if it is not a kind.
    """
    if type(data) is not list or len(data) != count:
        raise ValueError(
            f"the arguments of a kind must be a list of {counted(count, 'entry')}, one for each "
            "parameter"
        )
    return tuple(_read_entry(entry) for entry in data)


def key_of(kind: Kind) -> Any:
    """Return the key of a kind. It ignores whether arrays are read-only."""
    return exact_key(
        tuple(
            ("value", settled(entry[1]))
            if type(entry) is tuple and entry[0] == "value"
            else writable(entry)
            for entry in kind
        )
    )


def writable(entry: Entry) -> Entry:
    """Return an entry without read-only arrays."""
    if type(entry) is not tuple or entry[0] == "value":
        return entry
    if entry[0] == "array":
        return (*entry[:3], False)
    return (entry[0], tuple(map(writable, entry[1])))


def is_read_only(entry: Entry) -> bool:
    """Tell whether an entry has a read-only array."""
    if type(entry) is not tuple or entry[0] == "value":
        return False
    return bool(entry[3]) if entry[0] == "array" else any(one[3] for one in entry[1])


def _write_entry(entry: Entry) -> Any:
    if entry is None or type(entry) is bool:
        return entry
    if isinstance(entry, type):
        return entry.__name__
    word, *rest = entry
    if word == "value":
        return {"value": write_value(settled(rest[0]))}
    if word == "array":
        return {"array": [DTYPES[rest[0]].name, rest[1]]}
    return {word: [[DTYPES[one[1]].name, one[2]] for one in rest[0]]}


def _read_entry(data: Any) -> Entry:
    if data is None or type(data) is bool:
        return data
    # Check this before a dict lookup, because no other values of JSON are hashable.
    if data in ("int", "float"):
        return int if data == "int" else float
    if type(data) is dict and len(data) == 1:
        ((word, inside),) = data.items()
        if word == "value":
            value = read_value(inside)
            if value is not None and type(value) not in (bool, int, float):
                return ("value", value)
        elif word == "array":
            return _read_array(inside)
        elif (
            word in ("list", "tuple")
            and type(inside) is list
            and (word == "tuple") <= len(inside) <= _MOST_ARRAYS
        ):
            return (word, tuple(map(_read_array, inside)))
    raise ValueError(f"an entry of a kind must be of a known form (got {data!r:.60})")


def _read_array(data: Any) -> Entry:
    if type(data) is list and len(data) == 2:
        name, rank = data
        is_dtype = type(name) is str and name in BY_NAME
        if is_dtype and type(rank) is int and 0 <= rank <= _MOST_DIMENSIONS:
            return ("array", BY_NAME[name].number, rank, False)
    raise ValueError(
        f"an array of a kind must be an element type and a number of dimensions (got {data!r:.60})"
    )
