"""The parameters of a kernel: their places, and their types as far as known."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from culaunch._base.html import html_table
from culaunch._base.values import counted, spell
from culaunch._launch.signatures.parameter_type import (
    INTEGER_WORDS,
    QUALIFIERS,
    UNKNOWN,
    ParameterType,
    classify,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Signature:
    """The ordered parameters of a kernel.

    Attributes
    ----------
    parameters : tuple[Parameter, ...]
    source : str
        The source of the types: ``"name"`` (the mangled name), ``"image"`` (recorded when it was
        compiled), ``"ptx"``, ``"user"``, or ``"layout"`` if only sizes are known.

    Examples
    --------
    >>> str(module["add"].signature)
    '(float*, const float*, const float*, int)'
    """

    parameters: tuple[Parameter, ...]
    source: str

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parameters))})"

    def _repr_html_(self) -> str:
        rows = [(i, one.offset, one.size, one.type) for i, one in enumerate(self.parameters)]
        return html_table(("parameter", "offset", "bytes", "type"), rows)

    def __len__(self) -> int:
        return len(self.parameters)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    Attributes
    ----------
    offset, size : int
        Its place in the parameter block, in bytes, as the driver reports it.
    type : str or None
        Its C++ type, such as ``"const float*"``; None if unknown.
    name : str or None
        Its name, if the user's signature has it.

    Examples
    --------
    >>> parameter = module["add"].signature.parameters[3]
    >>> parameter.offset, parameter.size, parameter.type
    (24, 4, 'int')
    """

    offset: int
    size: int
    type: str | None
    _kind: ParameterType = field(default=UNKNOWN, repr=False, compare=False)
    name: str | None = field(default=None, repr=False, compare=False, kw_only=True)

    def __str__(self) -> str:
        return self.type or counted(self.size, "byte")


def kind_of(parameter: Parameter) -> ParameterType:
    """Return the known facts about the arguments that a parameter accepts."""
    return parameter._kind  # noqa: SLF001 - not the user's to see: `type` is


_NAMED = re.compile(r"^(?P<type>.*[\s*&>])(?P<name>[A-Za-z_]\w*)$")
_WORDS_OF_TYPES = ("signed char", "unsigned char", "unsigned __int128")
_TAG = re.compile(r"(struct|enum|class) \w+")


def make_signature(
    layout: Sequence[tuple[int, int]],
    types: Sequence[str | None] | None,
    source: str,
    is_template: bool = False,
) -> Signature:
    """Combine a layout with types; omit types that contradict it.

    The source of the types decides how far they are trusted. A template's ``Policy::Index`` may
    stand for any type, and a user's ``real`` for a float. PTX and cubins do not record const.
    """
    if types is None or len(types) != len(layout):
        types, source = [None] * len(layout), "layout"
    parameters = []
    for (offset, size), spelling in zip(layout, types, strict=True):
        is_scoped = spelling is not None and "::" in spelling
        is_certain = source in ("name", "image") and not (is_template and is_scoped)
        kind = classify(spelling, names_are_types=is_certain)
        # The driver's layout is correct. A type of another size is an error of its source, and is
        # ignored.
        if kind.size not in (None, size):
            spelling, kind = None, UNKNOWN  # noqa: PLW2901
        # The compiler's PTX also records a pointer as "void*".
        is_told = source in ("name", "user") or (source == "image" and spelling != "void*")
        if kind.may_write and not is_told:
            kind = replace(kind, may_write=False)
        parameters.append(Parameter(offset, size, spelling, kind))
    if not any(parameter.type for parameter in parameters) and parameters:
        source = "layout"
    return Signature(tuple(parameters), source)


def parse_signature(text: str, layout: Sequence[tuple[int, int]], kernel: str) -> Signature:
    """Read a signature that the user wrote, such as ``"float*, const half* x, int n"``.

    Raise ValueError if the count or a size is not the kernel's.
    """
    if not isinstance(text, str):
        raise TypeError(
            f"signature must be a str of C type names, such as 'float*, int' (got {spell(text)})"
        )
    split = [_without_name(part) for part in _split(text)]
    types = [spelling for spelling, _ in split]
    if len(types) != len(layout):
        raise ValueError(
            f"signature must have {counted(len(layout), 'parameter')}, as {kernel} has (sizes in "
            f"bytes: {', '.join((str(size) for _, size in layout)) or 'none'}; got {text!r} with "
            f"{len(types)})"
        )
    for index, (spelling, (_, size)) in enumerate(zip(types, layout, strict=True)):
        known = classify(spelling).size
        if known is not None and known != size:
            raise ValueError(
                f"parameter {index} of signature must have {counted(size, 'byte')}, as in "
                f"{kernel} (got {spelling!r} with {counted(known, 'byte')} in {text!r})"
            )
    made = make_signature(layout, types, "user")
    named = zip(made.parameters, split, strict=True)
    return Signature(tuple(replace(one, name=name) for one, (_, name) in named), made.source)


def _without_name(part: str) -> tuple[str, str | None]:
    """Return the type and the name of ``const float* x``; a lone type stays as it is."""
    part = part.strip()
    if not part:
        raise ValueError(
            "signature must not have an empty parameter: write C type names between the commas"
        )
    bare = " ".join(QUALIFIERS.sub(" ", part).split())
    if _has_several_names(bare):
        raise ValueError(
            f"each parameter of signature must be a type and an optional name (got {part!r}): put "
            "a comma between parameters, each with its own type"
        )
    match = _NAMED.match(part)
    is_type = (
        INTEGER_WORDS.issuperset(bare.split())
        or bare in _WORDS_OF_TYPES
        or _TAG.fullmatch(bare) is not None
    )
    if match is None or _NAMED.match(bare) is None or is_type:
        return part, None
    return match["type"].strip(), match["name"]


def _has_several_names(bare: str) -> bool:
    # Brackets are removed from the innermost outward, because they contain other types.
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)|\[[^][]*\]", "", bare)) != bare:
        bare = shorter
    *types, after = re.split(r"[*&]", re.sub(r"\b(struct|enum|class)\b|: .*", "", bare))
    if types:  # only the name comes after the last star
        return len(after.split()) > 1
    words = after.split()
    own = [word for word in words if word not in INTEGER_WORDS and word not in ("char", "__int128")]
    return len(own) > (1 if len(own) < len(words) else 2)


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    if not text.strip() or text.strip() == "void":
        return []
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
