"""Names and strings in generated C. All text from a library goes through this module.

A Python name becomes a C name by one rule, and different names stay different. Each character that
is not an ASCII letter, digit or underscore becomes ``_u<hex>_``. A name that C, C++, their headers
or the source itself already uses gets an underscore at its end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._triton.c_output.reserved import FAMILIES, FUNCTION_SUFFIXES, FUNCTIONS, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPELT = re.compile(r"_u[0-9a-f]+_")
_ESCAPES = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\", "?": "\\?"}


def c_identifier(name: str, *, is_function: bool = False) -> str:
    """Return the C name of a parameter, a constant or (`is_function`) a kernel.

    Raise ValueError if there is no name.
    """
    if not name:
        raise ValueError("a C name must have at least one letter")
    made = name
    if not _PLAIN.fullmatch(name) or _SPELT.search(name):
        # Also escape underscores before a u, so no name looks like an escape sequence. The rule is
        # reversible: two names never become one.
        made = re.sub(r"_(?=u)", "_u5f_", name)
        made = re.sub(r"\A[0-9]|[^A-Za-z0-9_]", lambda found: f"_u{ord(found[0]):x}_", made)
    # A reserved name with added underscores counts as reserved, because its own spelling may occur.
    taken = is_reserved(made, is_function) or is_reserved(made.rstrip("_"), is_function)
    return f"{made}_" if taken else made


def is_reserved(name: str, is_function: bool = False) -> bool:
    """Tell whether a name already has a meaning in compiled C."""
    if name in WORDS or FAMILIES.fullmatch(name):
        return True
    if not is_function:
        return False
    stems = (name, *(name.removesuffix(one) for one in FUNCTION_SUFFIXES))
    return any(stem in FUNCTIONS for stem in stems)


def check_c_name(name: object, what: str = "name") -> str:
    """Return a name that the user chose for C; it is not changed.

    Raises
    ------
    TypeError, ValueError
        If it is not a C identifier, or is taken.
    """
    if not isinstance(name, str):
        raise TypeError(f"{what} must be a str (got {type(name).__qualname__})")
    if not _PLAIN.fullmatch(name) or is_reserved(name, is_function=True):
        raise ValueError(
            f"{what} must be a C identifier (ASCII letters, digits, underscores) that C, C++ and "
            f"cuda.h do not use (got {name!r:.80})"
        )
    return name


def c_string(text: str) -> str:
    """Return a string literal of C."""
    letters = []
    for byte in text.encode():
        letter = chr(byte)
        if letter in _ESCAPES:
            letters.append(_ESCAPES[letter])
        else:
            # Octal escapes end after three digits, regardless of the next character.
            letters.append(letter if 32 <= byte < 127 else f"\\{byte:03o}")
    return '"' + "".join(letters) + '"'


def c_include(file: str) -> str:
    """Return the line that includes a header beside the source.

    Raise ValueError if an include cannot name the file: includes have no escapes.
    """
    if not file.isprintable() or re.search(r'["\\]|\?\?|//|/\*', file):
        raise ValueError(
            f"{file!r} cannot be the name of a header: a C source could not include it"
        )
    return f'#include "{file}"'


class NameSpace:
    """The names of one scope. If two would be equal, the later one gets underscores."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def add(self, name: str) -> str:
        """Return the C name of another parameter or constant."""
        made = c_identifier(name)
        while made in self._taken:
            made += "_"
        self._taken.add(made)
        return made
