"""Kinds of arguments in a manifest, and as they are looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._function.tracing.kinds import key_of as exact_key
from culaunch._launch.formats.dtype import BY_NAME, DTYPES
from culaunch._ship.values import read_value, settled, write_value

if TYPE_CHECKING:
    from culaunch._function.tracing.kinds import Entry, Kind

_MOST_DIMENSIONS = 32
_MOST_ARRAYS = 4096


def write_kind(kind: Kind) -> list[Any]:
    """Return a kind as JSON has it: whether an array is read-only does not belong to it."""
    return [_write_entry(entry) for entry in kind]


def read_kind(data: Any, count: int) -> Kind:
    """Return what :func:`write_kind` wrote, for so many parameters.

    Raises
    ------
    ValueError
        If it is no kind.
    """
    if type(data) is not list or len(data) != count:
        raise ValueError(f"a kind has {count} entries, one for each parameter")
    return tuple(_read_entry(entry) for entry in data)


def key_of(kind: Kind) -> Any:
    """Return the key of a kind: the same for arrays that are read-only and others."""
    return exact_key(
        tuple(
            ("value", settled(entry[1]))
            if type(entry) is tuple and entry[0] == "value"
            else writable(entry)
            for entry in kind
        )
    )


def writable(entry: Entry) -> Entry:
    """Return an entry with no array that is read-only."""
    if type(entry) is not tuple or entry[0] == "value":
        return entry
    if entry[0] == "array":
        return (*entry[:3], False)
    return (entry[0], tuple(map(writable, entry[1])))


def is_read_only(entry: Entry) -> bool:
    """Tell whether an entry has an array that is read-only."""
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
    # Before dicts are looked into: JSON has nothing hashable but these.
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
    raise ValueError(f"{data!r:.60} is not an entry of a kind")


def _read_array(data: Any) -> Entry:
    if type(data) is list and len(data) == 2:
        name, rank = data
        is_dtype = type(name) is str and name in BY_NAME
        if is_dtype and type(rank) is int and 0 <= rank <= _MOST_DIMENSIONS:
            return ("array", BY_NAME[name].number, rank, False)
    raise ValueError(f"{data!r:.60} is not an array of a kind")
