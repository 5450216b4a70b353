"""C++ spellings of mangled names."""

from __future__ import annotations

import re

from culaunch._image.itanium.declarators import Function
from culaunch._image.itanium.nodes import Expansion, Printer, UnsupportedNameError
from culaunch._image.itanium.parser import Parser

# Names of template-heavy kernels reach some ten thousand characters.
_LONGEST = 1 << 15
_STATIC = re.compile(r"__nv_static_(\d{1,5})_", re.ASCII)


def demangle(mangled: str) -> str:
    """Return the C++ spelling of a mangled function name, as ``c++filt`` prints it.

    Parameters
    ----------
    mangled : str
        Any name.

    Returns
    -------
    str
        The name itself when it is not mangled, or when it uses parts of C++ that kernels' names
        do not: then no spelling is better than a wrong one.

    Examples
    --------
    >>> demangle("_Z5scaleIfEvPT_PKS0_i")
    'void scale<float>(float*, float const*, int)'
    >>> demangle("scale")
    'scale'
    """
    return spell(mangled)[0]


def mangled_param_types(mangled: str) -> tuple[str, ...] | None:
    """Return the parameter types that a mangled function name spells.

    Parameters
    ----------
    mangled : str
        Any name.

    Returns
    -------
    tuple of str, or None
        In the C spelling that signatures use, ``"const float*"``; None when it is not the
        mangled name of a function.
    """
    return spell(mangled)[1]


def spell(mangled: str) -> tuple[str, tuple[str, ...] | None]:
    """Return both: the demangled name, and the parameter types (None where unknown)."""
    name = _without_file(mangled)
    if not name.startswith("_Z") or len(name) > _LONGEST:
        return mangled, None
    try:
        found = Parser(name).whole()
        out = Printer()
        found.print(out)
        types = _param_types(found) if isinstance(found, Function) else None
        return out.text(), types
    except UnsupportedNameError:
        return mangled, None


def _without_file(name: str) -> str:
    """Return a static kernel's own name: with -rdc, nvcc puts an identifier of the file before it.

    ``__nv_static_<length of the identifier>_<identifier>_<name>``
    """
    found = _STATIC.match(name)
    return name[found.end() + int(found[1]) + 1 :] if found else name


def _param_types(function: Function) -> tuple[str, ...]:
    found = []
    for param in function.params:
        if isinstance(param, Expansion) and param.count >= 0:
            indices: list[int | None] = list(range(param.count))
            pattern = param.pattern
        else:
            indices, pattern = [None], param
        for index in indices:
            out = Printer(west=True)
            out.pack_index = index
            pattern.print(out)
            found.append(out.text())
    return tuple(found)
