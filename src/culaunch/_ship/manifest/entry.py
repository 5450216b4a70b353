"""A function's entry in a library's manifest, written and read only here.

``docs/library_format.md`` is the specification.
"""

from __future__ import annotations

import keyword
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.architectures import architecture
from culaunch._ship.manifest.annotation import read_annotation
from culaunch._ship.manifest.constants import MOST_PARAMETERS, checked_constant
from culaunch._ship.manifest.json_lists import list_of, naming_the_entry, texts_of
from culaunch._ship.manifest.kinds import key_of, read_kind
from culaunch._ship.manifest.texts import MOST_TEXT
from culaunch._ship.manifest.values import read_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from culaunch._function.declarations.annotations import Wanted
    from culaunch._function.tracing.kinds import Kind

KIND = "function"
# The first version with functions, and the version that is written.
FIRST_VERSION, VERSION = 3, 4
MOST_FUNCTIONS = 4096
MOST_KINDS = 4096
MOST_CONSTANTS = 4096
MOST_TEXTS = 1 << 16
MOST_PROGRAM = 1 << 24
MOST_GUARDS = 4096
MOST_ARCHS = 64
# The members of a library besides its functions.
RESERVED = frozenset(("functions", "kernels", "source"))

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SavedKind(NamedTuple):
    """The program of one kind, as the manifest has it."""

    kind: Kind
    program: str
    """The member with its words."""
    constants: tuple[Any, ...]
    """As in JSON, checked."""
    texts: tuple[str, ...]
    writes: frozenset[int]
    """The parameters whose arrays it writes."""
    guards: dict[int, tuple[str, str]]
    """Block -> the place of its guard, and its condition."""
    explanation: str
    archs: tuple[tuple[str, ...], ...] | None
    """The architectures of each image, if the kind has more than one program."""


class SavedEntry(NamedTuple):
    """A function, as the manifest has it."""

    name: str
    doc: str | None
    parameters: tuple[tuple[str, int], ...]
    defaults: dict[str, Any]
    wanted: dict[int, Wanted]
    mutates: tuple[str, ...]
    may_mutate: tuple[str, ...]
    backward: str | None
    forward: str | None
    kinds: tuple[SavedKind, ...]


def is_function_name(name: object) -> bool:
    """Whether a function of a library may have this name."""
    return (
        isinstance(name, str)
        and _NAME.fullmatch(name) is not None
        and not keyword.iskeyword(name)
        and len(name) <= 200
        and name not in RESERVED
    )


def read_entry(data: Mapping[str, Any], members: Mapping[str, Any], source: str) -> SavedEntry:
    """Read a function of kind ``function``.

    Raises
    ------
    ImageError
        Naming what is wrong.
    """
    with naming_the_entry(data, source):
        return _read(data, members)


def _read(data: Mapping[str, Any], members: Mapping[str, Any]) -> SavedEntry:
    name = data["name"]
    if not is_function_name(name):
        raise ValueError(
            "the name of a function must be an identifier of ASCII letters, digits and _"
        )
    parameters, defaults, wanted = _read_parameters(list_of(data, "parameters", MOST_PARAMETERS))
    names = [one for one, _ in parameters]
    doc = data.get("doc")
    if doc is not None and not (isinstance(doc, str) and len(doc) <= MOST_TEXT):
        raise ValueError("doc must be a text")
    backward, forward = (_other_function(data, key) for key in ("backward", "forward"))
    kinds = tuple(
        _read_kind(one, len(parameters), members) for one in list_of(data, "kinds", MOST_KINDS)
    )
    _require_archs(kinds)
    return SavedEntry(
        name, doc, parameters, defaults, wanted, _names(data, "mutates", names),
        _names(data, "may_mutate", names), backward, forward, kinds,
    )  # fmt: skip


def _other_function(data: Mapping[str, Any], key: str) -> str | None:
    name: str | None = data.get(key)
    if name is not None and not is_function_name(name):
        raise ValueError(f"{key} must be the name of a function")
    return name


def _read_parameters(
    entries: list[Any],
) -> tuple[tuple[tuple[str, int], ...], dict[str, Any], dict[int, Wanted]]:
    parameters: list[tuple[str, int]] = []
    defaults: dict[str, Any] = {}
    wanted: dict[int, Wanted] = {}
    for index, entry in enumerate(entries):
        if type(entry) is not dict:
            raise ValueError(f"parameter {index} must be an object")
        name, how = entry.get("name"), entry.get("how")
        if (
            not isinstance(name, str)
            or _PARAMETER.fullmatch(name) is None
            or keyword.iskeyword(name)
            or any(name == one for one, _ in parameters)
        ):
            raise ValueError(f"parameter {index} must have a name that no other parameter has")
        # Python's order of parameters: positional-only, then positional or keyword, then
        # keyword-only.
        if type(how) is not int or not (parameters[-1][1] if parameters else 0) <= how <= 2:
            raise ValueError(
                f"how must be 0, 1 or 2 for {name}, and not less than for the parameter before it"
            )
        parameters.append((name, how))
        if "default" in entry:
            defaults[name] = read_value(entry["default"])
        elif how < 2 and defaults:
            raise ValueError(f"{name} must have a default, because a parameter before it has one")
        if entry.get("annotation") is not None:
            wanted[index] = read_annotation(entry["annotation"])
    return tuple(parameters), defaults, wanted


def _read_kind(data: Any, count: int, members: Mapping[str, Any]) -> SavedKind:
    if type(data) is not dict:
        raise ValueError(f"a kind must be an object (got {data!r:.60})")
    kind = read_kind(data.get("arguments"), count)
    program = data.get("program")
    if not isinstance(program, str) or program not in members:
        raise ValueError(f"program must be the name of a member (got {program!r:.60})")
    size = members[program]["size"]
    # The extension checks the words when it decodes them.
    if not 0 < size <= MOST_PROGRAM or size % 8:
        raise ValueError(
            f"a program must consist of words of 8 bytes, at most {MOST_PROGRAM} bytes"
        )
    constants = tuple(
        checked_constant(one, members) for one in list_of(data, "constants", MOST_CONSTANTS)
    )
    texts = tuple(texts_of(data, "texts", MOST_TEXTS))
    writes = list_of(data, "writes", count)
    if not all(type(one) is int and 0 <= one < count for one in writes):
        raise ValueError("each item of writes must be the number of a parameter")
    guards: dict[int, tuple[str, str]] = {}
    for one in list_of(data, "guards", MOST_GUARDS):
        if type(one) is not list or len(one) != 3 or type(one[0]) is not int:
            raise ValueError("a guard must be the number of a block and two texts")
        if not all(isinstance(text, str) and len(text) <= MOST_TEXT for text in one[1:]):
            raise ValueError("a guard must be the number of a block and two texts")
        guards[one[0]] = (one[1], one[2])
    explanation = data.get("explanation", "")
    if not isinstance(explanation, str):
        raise ValueError("explanation must be a text")
    archs = None if data.get("archs") is None else _read_archs(data)
    return SavedKind(kind, program, constants, texts, frozenset(writes), guards, explanation, archs)


def _read_archs(data: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    found = []
    for one in list_of(data, "archs", MOST_CONSTANTS):
        texts = texts_of({"archs": one}, "archs", MOST_ARCHS)
        if not all(map(architecture, texts)):
            raise ValueError("each item of archs must be an architecture")
        found.append(tuple(texts))
    return tuple(found)


def _require_archs(kinds: tuple[SavedKind, ...]) -> None:
    """Refuse two programs of one kind that do not name their devices."""
    known: dict[Any, SavedKind] = {}
    # As in a lookup, read-only and writable arrays make the same kind.
    for one in kinds:
        other = known.setdefault(key_of(one.kind), one)
        if other is not one and (one.archs is None or other.archs is None):
            raise ValueError("two kinds with the same arguments must have archs")


def _names(data: Mapping[str, Any], key: str, names: list[str]) -> tuple[str, ...]:
    value = list_of(data, key, MOST_PARAMETERS)
    if not all(isinstance(one, str) and one in names for one in value):
        raise ValueError(f"each item of {key} must be a parameter")
    return tuple(value)
