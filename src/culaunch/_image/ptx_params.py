"""Parameters of a PTX entry.

PTX says less about a type than C. An uncertain claim would make a launch refuse a correct argument.
Therefore only these types are known:

=====================================  ===========================================================
PTX                                    type
=====================================  ===========================================================
``.u64 .ptr``, ``.b64 .ptr``           ``void*``
``.f32``, ``.f64``                     ``float``, ``double``
``.f16``, ``.bf16``, ``.f16x2``, ...   ``__half``, ``__nv_bfloat16``, ``__half2``, ...
``.s8`` to ``.s64``                    ``signed char``, ``short``, ``int``, ``long long``
``.u64`` without ``.ptr``              unknown: a pointer or any 64-bit integer
``.u8`` to ``.u32``                    unknown: compilers write them for both signs, and for enums
``.b8`` to ``.b64``                    unknown: any bits
arrays and vectors                     unknown: a struct
=====================================  ===========================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._image.kernel_params import agrees

if TYPE_CHECKING:
    from culaunch._image.budget import Budget
    from culaunch._image.info import ParameterInfo
    from culaunch._image.ptx_tokens import Tokens

_SIZES = {
    ".f16": 2,
    ".f16x2": 4,
    ".bf16": 2,
    ".bf16x2": 4,
    ".f32": 4,
    ".f64": 8,
    ".texref": 8,
    ".surfref": 8,
    ".samplerref": 8,
    ".pred": 1,
    **{f".{kind}{bits}": bits // 8 for kind in "bsu" for bits in (8, 16, 32, 64)},
    ".b128": 16,
}
_TYPES = {
    ".f16": "__half",
    ".f16x2": "__half2",
    ".bf16": "__nv_bfloat16",
    ".bf16x2": "__nv_bfloat162",
    ".f32": "float",
    ".f64": "double",
    ".s8": "signed char",
    ".s16": "short",
    ".s32": "int",
    ".s64": "long long",
}
_VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}
_SPACES = (".const", ".global", ".local", ".shared")
# More than any architecture allows (32764); a larger one is not worth adding up.
_MAX_SIZE = 1 << 16


def parameter_block(
    tokens: Tokens, budget: Budget, types: tuple[str | None, ...] | None = None
) -> tuple[ParameterInfo, ...]:
    """Parse the parameters that follow an entry's name, if it has any.

    Parameters
    ----------
    tokens : Tokens
        The position is after the name, and is moved after the closing parenthesis.
    budget : Budget
        Makes and counts the parameters.
    types : tuple of (str or None), or None
        The types from the kernel's name. They say more than PTX, and are preferred if they agree
        with it.
    """
    if not tokens.accept("("):
        return ()
    found: list[tuple[int, int, str | None]] = []
    end = 0
    while not tokens.accept(")"):
        if found and not tokens.accept(","):
            raise tokens.error("is corrupt: `,` or `)` is missing after a parameter")
        size, alignment, spelled = _parameter(tokens)
        # The layout of a struct in C, which the driver uses for the parameter block.
        offset = (end + alignment - 1) // alignment * alignment
        end = offset + size
        if end > _MAX_SIZE:
            raise tokens.error(f"is corrupt: its parameters have more than {_MAX_SIZE} bytes")
        if not size:
            raise tokens.error("is corrupt: a parameter has no bytes")
        found.append((offset, size, spelled))
    # A name with another number of parameters belongs to something else.
    if types is None or len(types) != len(found):
        types = (None,) * len(found)
    return tuple(
        budget.param(offset, size, named if named and agrees(named, size) else own, tokens.reader)
        for (offset, size, own), named in zip(found, types, strict=True)
    )


def _parameter(tokens: Tokens) -> tuple[int, int, str | None]:
    """Parse one parameter: its size, its alignment, and its type if that is certain."""
    if not tokens.accept(".param"):
        raise tokens.error("is corrupt: `.param` is missing before a parameter")
    size = lanes = 0
    alignment = 0
    pointer = False
    spelled: str | None = None
    while (word := tokens.next()).startswith("."):
        if word == ".align":
            # After `.ptr` it is the alignment of the pointer's target.
            value = tokens.number(word)
            if value & (value - 1) or not 0 < value <= _MAX_SIZE:
                raise tokens.error(f"is corrupt: a parameter has the alignment {value}")
            alignment = alignment if pointer else value
        elif word == ".ptr":
            pointer = True
        elif word in _VECTORS:
            lanes = _VECTORS[word]
        elif word in _SIZES:
            size, spelled = _SIZES[word], _TYPES.get(word)
        elif word not in _SPACES:
            raise tokens.error(f"is corrupt: a parameter contains {word!r}")
    if not size:
        raise tokens.error(f"is corrupt: parameter {word!r} has no type")
    natural = size * (lanes or 1)
    size = natural
    if tokens.accept("["):
        size *= tokens.number("[]")
        spelled = None
        if not tokens.accept("]"):
            raise tokens.error("is corrupt: `]` is missing after the size of an array")
    elif pointer:
        spelled = "void*" if size == 8 else None
    elif lanes:
        spelled = None
    return size, alignment or natural, spelled
