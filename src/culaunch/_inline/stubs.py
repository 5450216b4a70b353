"""Stubs for type checkers: the parameters and results of a kernel library's functions."""

from __future__ import annotations

import importlib
import keyword
import os
import re
from typing import Any

from culaunch._base.checks import checked_path
from culaunch._base.outputs import write_output
from culaunch._errors import ImageError, MissingDependencyError

# TVM-FFI exports a function under this name; with a second underscore it is something about one.
_EXPORT = re.compile(rb"(?<=\0)__tvm_ffi_(?!_)([A-Za-z0-9_]+)(?=\0)")

_HEAD = '''\
"""The functions of {file}, as `culaunch stubs` read them from it."""

from typing import Any, Protocol

class Array(Protocol):
    """An array of PyTorch, JAX, CuPy, NumPy or culaunch."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
'''
_PLAIN = {"int", "float", "bool", "str", "bytes", "None"}


def stubs(library: str | os.PathLike[str], output: str | os.PathLike[str] | None = None) -> str:
    """Return a stub (``.pyi``) of a kernel library's functions.

    It has the types, the docstrings, and the parameters' names if ``CULAUNCH_EXPORT`` or
    ``functions=`` recorded them. The library is loaded for it.

    Parameters
    ----------
    library : str or os.PathLike
        A shared library with functions of TVM-FFI: of ``CULAUNCH_EXPORT``,
        :func:`culaunch.cpp.load_inline`, :func:`culaunch.cpp.build` or
        :func:`culaunch.ship.export`.
    output : str or os.PathLike, optional
        Write it there as well.

    Returns
    -------
    str
        The text of the stub; its functions are in the order of their names.

    Raises
    ------
    ImageError
        If the file is not a library that can be loaded, or lacks this function.
    MissingDependencyError
        Without apache-tvm-ffi.
    OSError
        If the library cannot be read, or the output cannot be written.

    Examples
    --------
    >>> text = "double twice(double x) { return 2 * x; }"
    >>> library = cl.cpp.build_inline("twice", text, functions="twice", output="twice.so")
    >>> "def twice(x: float" in cl.cpp.stubs("twice.so")
    True
    """
    path = checked_path("library", library)
    if output is not None:
        output = checked_path("output", output)
    try:
        tvm_ffi = importlib.import_module("tvm_ffi")
    except ImportError as error:
        raise MissingDependencyError(
            "stubs needs apache-tvm-ffi: python -m pip install 'culaunch[embed]'"
        ) from error
    with open(path, "rb") as file:
        # Read from the bytes, because the loaded library cannot list its exports.
        found = _EXPORT.findall(file.read())
    try:
        module = tvm_ffi.load_module(os.path.abspath(path))
    except (RuntimeError, ValueError, OSError) as error:
        raise ImageError(f"{path} cannot be loaded as a library: {error}") from error
    names = sorted({name.decode() for name in found})
    names = [name for name in names if module.implements_function(name)]
    if not names:
        raise ImageError(
            f"{path} exports no TVM-FFI function: export one with CULAUNCH_EXPORT(name, function)"
        )
    functions = [_function(module, name, tvm_ffi) for name in names]
    text = "\n".join([_HEAD.format(file=os.path.basename(path)), *functions])
    if output is not None:
        write_output(output, text.encode())
    return text


def _function(module: Any, name: str, tvm_ffi: Any) -> str:
    if keyword.iskeyword(name):
        return f"# {name} is a Python keyword: call module[{name!r}]\n"
    known = module.get_function_metadata(name) or {}
    parameters, result = "*args: Any", "Any"
    if "type_schema" in known:
        schema = tvm_ffi.core.TypeSchema.from_json_str(known["type_schema"])
        named = dict(schema.named_args or {})
        # Versions of TVM-FFI before 0.1.15 have one list, the result first.
        returned, *types = (*named["return"], *named["params"]) if named else schema.args
        names = known.get("parameters") or []
        # The author of the exports supplies the names, and may supply too few.
        if len(names) != len(types):
            names = [f"argument{index}" for index in range(len(types))]
        words = [f"{_name(one)}: {_type(kind)}" for one, kind in zip(names, types, strict=True)]
        parameters = ", ".join([*words, "/"] if words else [])
        result = _type(returned, is_result=True)
    head = f"def {name}({parameters}) -> {result}:"
    doc = module.get_function_doc(name)
    if not doc:
        return f"{head} ...\n"
    text = doc.replace("\\", "\\\\").replace('"""', '\\"""')
    text = "\n    ".join(text.splitlines())
    end = "\n    " if "\n" in text or text.endswith('"') else ""
    return f'{head}\n    """{text}{end}"""\n'


def _name(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _type(schema: Any, *, is_result: bool = False) -> str:
    """Return a type as Python's checkers know it; an array that comes back is the framework's."""
    inner = [_type(one, is_result=is_result) for one in schema.args]
    if schema.origin in _PLAIN:
        return str(schema.origin)
    if schema.origin == "Tensor":
        return "Any" if is_result else "Array"
    if schema.origin == "Optional":
        return f"{inner[0]} | None"
    if schema.origin == "Union":
        return " | ".join(dict.fromkeys(inner))
    if schema.origin == "tuple":
        return f"tuple[{', '.join(inner)}]" if inner else "tuple[Any, ...]"
    return "Any"
