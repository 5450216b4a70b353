"""A cell of CUDA C++ as variables."""

from __future__ import annotations

import re
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from culaunch._compile.compilation import compile  # noqa: A004
from culaunch._launch import load

if TYPE_CHECKING:
    from culaunch._notebook.options import CompileOptions


def bind_kernels(source: str, options: CompileOptions) -> dict[str, Any]:
    """Compile a source for the driver in use; return its kernels by the names of their variables.

    A kernel's variable has the kernel's name, without namespaces, template arguments and
    parameters.

    Raises
    ------
    ValueError
        If there is no kernel, or two kernels would be one variable.
    CompileError
        If the compiler refuses the source.
    """
    given: dict[str, Any] = {"names": options.names, "extra_options": options.options}
    if options.arch is not None:
        given["arch"] = options.arch
    module = load(compile(source, **{name: value for name, value in given.items() if value}))
    by_name: dict[str, list[Any]] = {}
    for kernel in module.kernels:
        by_name.setdefault(_variable(kernel.demangled), []).append(kernel)
    found: dict[str, Any] = {}
    for name, kernels in by_name.items():
        if len(kernels) == 1 and name.isidentifier() and not iskeyword(name):
            found[name] = kernels[0]
        elif options.module is None:
            listed = " and ".join(kernel.demangled for kernel in kernels)
            raise ValueError(
                f"{listed} cannot be the variable {name}: give --module NAME, and use NAME[...]"
            )
    if options.module is not None:
        found[options.module] = module
    elif not found:
        raise ValueError(
            "the cell has no kernel: a template needs its instances, as in %%cu 'scale<float>'"
        )
    return found


def _variable(demangled: str) -> str:
    """Return the last name of a function: ``scale`` for ``void my::scale<float>(float*)``."""
    text = demangled.replace("(anonymous namespace)::", "")
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:  # the innermost arguments first
        text = shorter
    name = text.partition("(")[0].split()[-1:] or [""]
    return name[0].rpartition("::")[2]
