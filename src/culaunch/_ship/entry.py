"""What a library's manifest says of a function: written and read here alone.

``docs/library_format.md`` is the specification.
"""

from __future__ import annotations

import keyword
import re
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._errors import ImageError
from culaunch._function import opcodes as oc
from culaunch._function.annotations import Array, Wanted, same
from culaunch._ship.kinds import read_kind
from culaunch._ship.values import read_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from culaunch._function.kinds import Kind

KIND = "function"
VERSION = 3
MOST_FUNCTIONS = 4096
MOST_PARAMETERS = 255
MOST_KINDS = 4096
MOST_CONSTANTS = 4096
MOST_TEXTS = 1 << 16
MOST_TEXT = 1 << 16
MOST_PROGRAM = 1 << 24
MOST_GUARDS = 4096
# What a library has besides its functions.
RESERVED = frozenset(("functions", "source"))

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYMBOL = re.compile(r"[A-Za-z_$%.][A-Za-z0-9_$%.]*")
# In the text of a check numbers of registers stand in braces, with a width or precision at most.
_SPEC = r"[<>=^]?[+ -]?#?0?[0-9]{0,3}[,_]?(\.[0-9]{1,3})?[bdoxXeEfFgGn%]?"
_HOLE = rf"\{{(?P<number>[0-9]{{1,4}})(:{_SPEC})?\}}"
_TEMPLATE = re.compile(rf"([^{{}}]|\{{\{{|\}}\}}|{_HOLE})*")
_HOLES = re.compile(rf"\{{\{{|\}}\}}|{_HOLE}")
_PLAIN: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}


class SavedKind(NamedTuple):
    """The program of one kind, as the manifest has it.

    Attributes
    ----------
    kind : tuple
    program : str
        The member with its words.
    constants : list
        As in JSON, checked.
    texts : tuple[str, ...]
    writes : frozenset[int]
        The parameters whose arrays it writes.
    guards : dict[int, tuple[str, str]]
        Block -> the place of its guard, and what it asks.
    explanation : str
    """

    kind: Kind
    program: str
    constants: tuple[Any, ...]
    texts: tuple[str, ...]
    writes: frozenset[int]
    guards: dict[int, tuple[str, str]]
    explanation: str


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


def is_program_text(text: str, *, is_template: bool) -> bool:
    """Whether a program may have this text: where it is a check's, nothing of it is looked up."""
    return len(text) <= MOST_TEXT and (not is_template or _TEMPLATE.fullmatch(text) is not None)


def read_entry(data: Mapping[str, Any], members: Mapping[str, Any], source: str) -> SavedEntry:
    """Read a function of kind ``function``.

    Raises
    ------
    ImageError
        Naming what is wrong.
    """
    try:
        return _read(data, members)
    except (ValueError, TypeError) as error:
        raise ImageError(
            f"the manifest's entry of {data['name']!r:.60} is wrong: {error}", source=source
        ) from None


def _read(data: Mapping[str, Any], members: Mapping[str, Any]) -> SavedEntry:
    name = data["name"]
    if not is_function_name(name):
        raise ValueError("a function's name is an identifier of ASCII letters, digits and _")
    parameters, defaults, wanted = _read_parameters(_list(data, "parameters", MOST_PARAMETERS))
    names = [one for one, _ in parameters]
    doc, backward = data.get("doc"), data.get("backward")
    if doc is not None and not (isinstance(doc, str) and len(doc) <= MOST_TEXT):
        raise ValueError("doc is no text")
    if backward is not None and not is_function_name(backward):
        raise ValueError("backward is no name of a function")
    kinds = tuple(
        _read_kind(one, len(parameters), members) for one in _list(data, "kinds", MOST_KINDS)
    )
    return SavedEntry(
        name, doc, parameters, defaults, wanted, _names(data, "mutates", names),
        _names(data, "may_mutate", names), backward, kinds,
    )  # fmt: skip


def _read_parameters(
    entries: list[Any],
) -> tuple[tuple[tuple[str, int], ...], dict[str, Any], dict[int, Wanted]]:
    parameters: list[tuple[str, int]] = []
    defaults: dict[str, Any] = {}
    wanted: dict[int, Wanted] = {}
    for index, entry in enumerate(entries):
        if type(entry) is not dict:
            raise ValueError(f"parameter {index} is no object")
        name, how = entry.get("name"), entry.get("how")
        if (
            not isinstance(name, str)
            or _PARAMETER.fullmatch(name) is None
            or keyword.iskeyword(name)
            or any(name == one for one, _ in parameters)
        ):
            raise ValueError(f"parameter {index} has no name of its own")
        if type(how) is not int or not (parameters[-1][1] if parameters else 0) <= how <= 2:
            raise ValueError(f"how {name} is passed is 0, 1 or 2, and never less than before it")
        parameters.append((name, how))
        if "default" in entry:
            defaults[name] = read_value(entry["default"])
        elif how < 2 and defaults:
            raise ValueError(f"{name} has no default, and one before it has")
        if entry.get("annotation") is not None:
            wanted[index] = _read_annotation(entry["annotation"])
    return tuple(parameters), defaults, wanted


def write_annotation(want: Wanted) -> dict[str, Any]:
    """Return what a parameter takes, as JSON has it."""
    array: dict[str, Any] | None = None
    if want.array is not None:
        one = want.array
        array = {
            "dtypes": None if one.dtypes is None else [dtype.name for dtype in one.dtypes],
            "same": one.same,
            "dims": None if one.dims is None else " ".join(map(str, one.dims)),
        }
    return {
        "array": array,
        "plain": [kind.__name__ for kind in want.plain],
        "optional": want.is_optional,
    }


def _read_annotation(data: Any) -> Wanted:
    if type(data) is not dict or type(data.get("optional")) is not bool:
        raise ValueError(f"{data!r:.60} is no annotation")
    plain = _list(data, "plain", len(_PLAIN))
    if not all(isinstance(one, str) and one in _PLAIN for one in plain):
        raise ValueError("an annotation has int, float, bool and str, and nothing else")
    array = data.get("array")
    made = None
    if array is not None:
        if type(array) is not dict:
            raise ValueError(f"{array!r:.60} is no array of an annotation")
        dtypes, other, dims = (array.get(key) for key in ("dtypes", "same", "dims"))
        dtype: Any = None
        if other is not None:
            dtype = same(other)
        elif dtypes is not None:
            dtype = " | ".join(_texts(array, "dtypes", 64))
        made = Array(dtype, dims)
        made.is_optional = data["optional"]
    return Wanted(made, tuple(_PLAIN[one] for one in plain), data["optional"])


def _read_kind(data: Any, count: int, members: Mapping[str, Any]) -> SavedKind:
    if type(data) is not dict:
        raise ValueError(f"{data!r:.60} is no kind")
    kind = read_kind(data.get("arguments"), count)
    program = data.get("program")
    if not isinstance(program, str) or program not in members:
        raise ValueError(f"there is no member {program!r:.60} for a program")
    size = members[program]["size"]
    if not 0 < size <= MOST_PROGRAM or size % 8:
        raise ValueError(f"a program has whole words, at most {MOST_PROGRAM} bytes of them")
    constants = tuple(
        _checked_constant(one, members) for one in _list(data, "constants", MOST_CONSTANTS)
    )
    texts = tuple(_texts(data, "texts", MOST_TEXTS))
    writes = _list(data, "writes", count)
    if not all(type(one) is int and 0 <= one < count for one in writes):
        raise ValueError("writes has what is no number of a parameter")
    guards: dict[int, tuple[str, str]] = {}
    for one in _list(data, "guards", MOST_GUARDS):
        if type(one) is not list or len(one) != 3 or type(one[0]) is not int:
            raise ValueError("a guard is the number of a block and two texts")
        if not all(isinstance(text, str) and len(text) <= MOST_TEXT for text in one[1:]):
            raise ValueError("a guard is the number of a block and two texts")
        guards[one[0]] = (one[1], one[2])
    explanation = data.get("explanation", "")
    if not isinstance(explanation, str):
        raise ValueError("an explanation is a text")
    return SavedKind(kind, program, constants, texts, frozenset(writes), guards, explanation)


def _checked_constant(data: Any, members: Mapping[str, Any]) -> Any:
    """Return a constant of a program, which is of a closed set, as it came."""
    if type(data) is dict and len(data) == 1:
        ((word, inside),) = data.items()
        if word == "kernel":
            if type(inside) is not dict:
                raise ValueError("a kernel is an image and a name")
            image, name = inside.get("image"), inside.get("name")
            if not isinstance(image, str) or image not in members:
                raise ValueError(f"there is no member {image!r:.60} for an image")
            if not isinstance(name, str) or _SYMBOL.fullmatch(name) is None:
                raise ValueError(f"{name!r:.60} is no name of a kernel")
            return data
        if word == "namedtuple":
            if type(inside) is not dict:
                raise ValueError("a named tuple has a name and fields")
            fields = _texts(inside, "fields", MOST_PARAMETERS)
            words = [inside.get("name"), *fields]
            if len(set(fields)) != len(fields) or not all(
                isinstance(one, str) and _NAME.fullmatch(one) and not keyword.iskeyword(one)
                for one in words
            ):
                raise ValueError("a named tuple has a name, and fields with names of their own")
            return data
        if word == "keys":
            keys = read_value({"tuple": inside})
            if len(set(keys)) != len(keys):
                raise ValueError("a key comes twice")
            return data
    read_value(data)
    return data


def _list(data: Mapping[str, Any], key: str, most: int) -> list[Any]:
    value = data.get(key)
    if type(value) is not list or len(value) > most:
        raise ValueError(f"{key} is no list of at most {most} entries")
    return value


def _texts(data: Mapping[str, Any], key: str, most: int) -> list[str]:
    value = _list(data, key, most)
    if not all(isinstance(one, str) and len(one) <= MOST_TEXT for one in value):
        raise ValueError(f"{key} has what is no text of at most {MOST_TEXT} characters")
    return value


def _names(data: Mapping[str, Any], key: str, names: list[str]) -> tuple[str, ...]:
    value = _list(data, key, MOST_PARAMETERS)
    if not all(isinstance(one, str) and one in names for one in value):
        raise ValueError(f"{key} has what is no parameter")
    return tuple(value)


def check_texts(data: bytes, texts: tuple[str, ...]) -> None:
    """Check the texts of a program that was decoded: those of its checks are templates.

    Raises
    ------
    ValueError
        If one would be read as more than a text with numbers in it.
    """
    words = struct.unpack(f"<{len(data) // 8}q", data)
    at = 5 + words[4]
    for size in words[5:at]:
        end, start = at + size, at
        while start < end:
            number, length = words[start] & 0xFFFFFFFF, words[start] >> 32
            if number == oc.OPS["CHECK"].number:
                text, shown = texts[words[start + 2]], words[start + 4]
                numbers = [int(one["number"] or 0) for one in _HOLES.finditer(text)]
                is_good = is_program_text(text, is_template=True)
                if not is_good or any(one >= max(shown, 1) for one in numbers):
                    raise ValueError(f"program: the text {text!r:.60} of a check is no template")
            if number in (oc.GUARD, oc.EFFECTS):
                break
            start += length
        at = end
