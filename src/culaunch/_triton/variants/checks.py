"""The checks of a saved Triton kernel: a closed set of names, types, keys and settings.

The reader of libraries, :func:`culaunch.triton.compile` and the functions that make sets all use
these checks. Therefore every set that is written can be read again, and nothing else can.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from culaunch._base.architectures import architecture
from culaunch._triton.calls.object_kinds import TYPE_NAMES
from culaunch._triton.variants.parameter_sources import SIZES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

ELEMENTS = frozenset({*TYPE_NAMES.values(), *SIZES, "fp8e5b16", "void"})
# The types that the native dispatcher can convert a value to.
ANNOTATIONS = frozenset({"i1", "u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp16",
                         "bf16", "fp32", "fp64"})  # fmt: skip

# Function names in PTX and ELF; Python's own identifiers are not restricted to ASCII.
_SYMBOL = re.compile(r"[A-Za-z_$%.][A-Za-z0-9_$%.]*")
_OPTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DESCRIPTOR = re.compile(
    r"tensordesc(_im2col)?<([a-z0-9]+)\[ *\d+( *, *\d+)* *\](,[A-Za-z0-9_ ,.=()\[\]]*)?>"
)
_LONGEST = 1000


def check_symbol(name: object) -> str:
    """Return the name of a function in an image.

    Raise ValueError if neither PTX nor ELF has functions of that name.
    """
    if not isinstance(name, str) or not _is_symbol(name):
        raise ValueError(f"{name!r:.80} is not the name of a kernel in an image")
    return name


def check_function_name(name: object) -> str:
    """Return the name of a Python function, or of a kernel if there is no function.

    Raise ValueError if it is neither.
    """
    if isinstance(name, str) and len(name) <= _LONGEST and name.isidentifier():
        return name
    return check_symbol(name)


def check_identifier(name: object) -> str:
    """Return the name of a parameter; raise ValueError if Python has no such names."""
    if not isinstance(name, str) or len(name) > _LONGEST or not name.isidentifier():
        raise ValueError(f"{name!r:.80} is not the name of a parameter")
    return name


def check_element(name: object) -> str:
    """Return the name of an element type; raise ValueError if Triton has no such type."""
    if not isinstance(name, str) or name not in ELEMENTS:
        raise ValueError(f"Triton has no element type {name!r:.80}")
    return name


def check_annotation(text: object) -> str:
    """Return the type that a parameter declares; raise ValueError if no value can be of it."""
    if not isinstance(text, str):
        raise ValueError(f"{text!r:.80} is not an annotation")
    if text.startswith("*"):
        check_element(text[1:].removeprefix("k"))
    elif text and text not in ANNOTATIONS:
        raise ValueError(f"a value cannot be declared {text!r:.80}")
    return text


def check_arch(arch: object) -> str:
    """Return an architecture such as ``"sm_90a"`` or ``"compute_80"``.

    Raise ValueError if it is invalid.
    """
    if not isinstance(arch, str) or architecture(arch) is None:
        raise ValueError(f"{arch!r:.80} is not an architecture")
    return arch


def check_arguments(types: tuple[Any, ...], keys: tuple[Any, ...]) -> None:
    """Check the types of a kernel's arguments, and that each key matches its type.

    Raises
    ------
    ValueError
        Naming the first that does not.
    """
    if len(types) != len(keys):
        raise ValueError("types and keys differ in length")
    for kind, key in zip(types, keys, strict=True):
        if isinstance(kind, tuple) and isinstance(key, tuple):
            check_arguments(kind, key)
        elif not isinstance(kind, str) or isinstance(key, tuple) or key not in _keys_of(kind):
            raise ValueError(f"{key!r:.80} is not a key of the type {kind!r:.80}")


# Cached, because the variants of a set repeat the same few names.
@functools.lru_cache(maxsize=1024)
def _is_symbol(name: str) -> bool:
    return len(name) <= _LONGEST and _SYMBOL.fullmatch(name) is not None


@functools.lru_cache(maxsize=1024)
def _keys_of(kind: str) -> tuple[object, ...]:
    if kind == "constexpr":
        return (None, 1)
    if kind.startswith("*"):
        check_element(kind[1:].removeprefix("k"))
        return (None, "", "D")
    descriptor = _DESCRIPTOR.fullmatch(kind)
    if descriptor is not None:
        check_element(descriptor[2])
    elif kind not in SIZES:
        raise ValueError(f"{kind!r:.80} is not a type of an argument")
    return (None, "", "D") if kind[0] in "iu" and kind not in ("i1", "u1") else (None,)


def check_settings(
    constants: Collection[str],
    options: Iterable[str],
    constexprs: Collection[str],
    parameters: Collection[str],
) -> None:
    """Check the names that settings have: constants are the kernel's, options are not.

    Raises
    ------
    ValueError
        Naming those that are wrong.
    """
    unknown = sorted(set(constants) - set(constexprs))
    if unknown:
        raise ValueError(f"the kernel has no constant {', '.join(unknown):.80}")
    for name in options:
        if not _OPTION.fullmatch(name) or len(name) > _LONGEST or name in parameters:
            raise ValueError(f"{name!r:.80} is not the name of an option")
