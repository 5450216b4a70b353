"""The verb ``export``: functions become one shared library of TVM-FFI."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_list, checked_path
from culaunch._base.outputs import write_outputs
from culaunch._base.scratch import Scratch
from culaunch._base.values import spell
from culaunch._errors import MissingDependencyError
from culaunch._function import Function
from culaunch._function.export import library_header, library_source

if TYPE_CHECKING:
    from collections.abc import Sequence

# As Python, which rounds a product before it adds: a fused multiply-add does not.
_EXACT = ("-ffp-contract=off",)


def export(
    functions: Function[..., Any] | Sequence[Function[..., Any]],
    path: str | os.PathLike[str],
    *,
    header: str | os.PathLike[str] | None = None,
    flags: Sequence[str] = (),
    link_flags: Sequence[str] = (),
) -> None:
    """Write functions as a shared library, for every framework and language of Apache TVM-FFI.

    The library contains the programs that were traced so far (by calls, or by ``specialize``), and
    the images of their kernels. It needs no culaunch and no Python, only ``libtvm_ffi.so``.
    Arguments are positional. If a function returns only new arrays, ``NAME_into`` takes arrays for
    the results first. A call of another kind, or on a path that was not traced, raises an error
    that says so.

    Parameters
    ----------
    functions : Function or LoadedFunction, or a sequence of these
        The functions. A function of a library is exported for the device in use, whose driver loads
        its images.
    path : str or os.PathLike
        The library to write, such as ``"libmylib.so"``. It is replaced as a whole or not at all.
    header : str or os.PathLike, optional
        A C++ header to write beside it: the typed functions, in a namespace with the library's
        name. Code that includes it needs only the headers of apache-tvm-ffi.
    flags, link_flags : sequence of str, optional
        Further options for the C++ compiler and for the linker.

    Raises
    ------
    CompileError
        If there is no C++ compiler, or it fails.
    MissingDependencyError
        If apache-tvm-ffi or ``cuda.h`` is missing.
    TypeError
        If a function does something that only Python can: it closes over an array, returns an
        argument, or takes a value that TVM-FFI does not have.
    ValueError
        If a function was neither called nor specialized, or two exports have one name.

    Examples
    --------
    >>> result = scale(x, 2.0)
    >>> cl.ship.export([scale], "libmylib.so", header="mylib.h")
    """
    chosen = [functions] if isinstance(functions, Function) else functions
    for one in checked_list("functions", chosen, "functions of culaunch"):
        if not isinstance(one, Function):
            raise TypeError(
                f"functions must contain functions of culaunch (got {spell(one)}): decorate it "
                "with culaunch.function"
            )
    if not chosen:
        raise ValueError("functions must contain at least one function (got none)")
    output = checked_path("path", path)
    checked_list("flags", flags, "options")
    try:
        import tvm_ffi  # noqa: F401 - its headers and library are needed
    except ImportError as error:
        raise MissingDependencyError(
            "export needs apache-tvm-ffi: python -m pip install 'culaunch[embed]'"
        ) from error
    # Not imported at the top, because programs that only load libraries need no toolchain.
    from culaunch._inline.building import build_library
    from culaunch._inline.texts import InlineSource
    from culaunch._inline.toolchain import Toolchain

    name = _name_of(output)
    exported = [one._exported() for one in chosen]
    source = library_source(exported, name)
    # Create both texts before the slow compiler runs, so unsupported functions are refused at once.
    if header is not None:
        wanted = checked_path("header", header)
        text = library_header(exported, name, os.path.basename(output))
    toolchain = Toolchain.find(
        include_dirs=(), flags=(*_EXACT, *flags), cuda_flags=(), link_flags=link_flags, arch=None,
        with_nvcc=False,
    )  # fmt: skip
    unit = InlineSource(name, source.text, None, "", {})
    with Scratch() as directory:
        library, _ = build_library(directory, unit, source.images, toolchain, name)
        with open(library, "rb") as file:
            outputs = {output: file.read()}
    if header is not None:
        outputs[wanted] = text.encode()
    write_outputs(outputs)


def _name_of(path: str) -> str:
    """Return the library's name in images and messages: mylib for libmylib.so."""
    stem = os.path.basename(path).partition(".")[0].removeprefix("lib")
    name = re.sub(r"\W", "_", stem, flags=re.ASCII)
    return name if name.strip("_") and not name[0].isdigit() else f"library_{name}"
