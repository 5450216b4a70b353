"""A library as a package that pip installs."""

from __future__ import annotations

import keyword
import os
import re
from typing import TYPE_CHECKING

from culaunch._base.checks import checked_flag, checked_path, checked_text
from culaunch._base.outputs import write_output
from culaunch._base.waiting import waiting
from culaunch._core import __version__
from culaunch._function.programs import opcodes as oc
from culaunch._ship.libraries.library import Library
from culaunch._ship.packages.own_wheel import write_own_wheel
from culaunch._ship.packages.stubs import stub_text
from culaunch._ship.packages.wheel import Metadata, is_name, is_version, wheel_bytes, wheel_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from culaunch._ship.functions.loaded_function import LoadedFunction

_INIT = '''\
"""{title}"""

from pathlib import Path as _Path

import culaunch as _culaunch

__version__ = "{version}"
__all__ = [{names}]

_library = _culaunch.ship.load_library(_Path(__file__).with_name("{file}"))

{functions}
# By these names a program of JAX finds them in another process.
for _function in _library:
    _function.__module__ = __name__
'''

_TORCH = '''\
"""The functions as operators of PyTorch: importing this module registers them."""

import culaunch as _culaunch

from {package} import _library

__all__ = [{names}]

{functions}
'''
_JAX = '''\
"""The functions as operations of JAX, for programs of jax.jit."""

import culaunch as _culaunch

from {package} import _library

__all__ = [{names}]

{functions}
'''
# Module names that the package itself uses.
_MODULES = frozenset(("torch", "jax"))


def package(
    library: str | os.PathLike[str],
    *,
    name: str,
    version: str,
    output: str | os.PathLike[str] = ".",
    summary: str | None = None,
    requires: Sequence[str] = (),
    with_culaunch: bool = False,
) -> str:
    """Make a wheel of a library, which pip installs as a package with its functions.

    The package contains the library, the functions under their names, and stubs with their types
    and docstrings. Its module ``torch`` registers them as operators when it is imported. Its module
    ``jax`` has them as operations of JAX. It needs only culaunch. The same library always gives the
    same bytes.

    Parameters
    ----------
    library : str or os.PathLike
        A ``.culib`` file that :func:`culaunch.ship.save` wrote.
    name : str
        The distribution's name, such as ``"my-kernels"``; its package is then ``my_kernels``.
    version : str
        The version in the canonical form of PEP 440, such as ``"1.0"`` or ``"1.0rc1"``.
    output : str or os.PathLike, optional
        The directory for the wheel; the current one by default.
    summary : str, optional
        A one-line description.
    requires : sequence of str, optional
        Further requirements in the form of PEP 508: ``"torch>=2.6"``.

    with_culaunch : bool, optional
        Write a wheel of the culaunch that runs beside it, for this Python and system. Then
        ``pip install --no-index --find-links DIRECTORY NAME`` needs no package index.

    Returns
    -------
    str
        The path of the wheel.

    Raises
    ------
    ImageError
        If it is not a library, or contains an invalid program.
    ValueError, TypeError
        If it has no functions, or a name or the version is invalid.
    OSError
        If a file cannot be read or written; with `with_culaunch`, if culaunch is not installed
        from a wheel.

    Examples
    --------
    >>> result = scale(x, 2.0)
    >>> cl.ship.save([scale], "mylib.culib")
    >>> cl.ship.package("mylib.culib", name="my-kernels", version="1.0")
    '...my_kernels-1.0-...whl'
    """
    checked_flag("with_culaunch", with_culaunch)
    lib = Library(checked_path("library", library))
    module = _checked_module(name)
    if not is_version(checked_text("version", version)):
        raise ValueError(
            f"version must be in the canonical form of PEP 440, such as '1.0' or '1.0rc1' (got "
            f"{version!r})"
        )
    if not len(lib):
        raise ValueError(
            f"{lib.source} must have at least one function: write functions to it with "
            "culaunch.ship.save"
        )
    # The package's own modules would hide functions with these names.
    for one in lib.functions:
        if one in _MODULES:
            raise ValueError(
                f"no function may have the name {one}, which is a module of the package: rename "
                "the function"
            )
    line = summary if summary is not None else f"CUDA kernels: {', '.join(lib.functions)}"
    metadata = Metadata(
        name,
        version,
        _checked_line("summary", line),
        _description(name, module, lib),
        (f"culaunch>={_base_version()}", *(_checked_line("requires", one) for one in requires)),
        f"culaunch ({__version__})",
    )
    # Copy the file byte by byte, so its digests stay valid.
    with open(lib.source, "rb") as file:
        data = file.read()
    path = os.path.join(checked_path("output", output), wheel_name(metadata))
    with waiting(f"packaging {name} {version}") as show:
        write_output(path, wheel_bytes(metadata, _files(module, version, lib, data)))
        if with_culaunch:
            show(f"packaging {name} {version}: the wheel of culaunch")
            write_own_wheel(os.fspath(output))
    return path


def _files(module: str, version: str, lib: Library, data: bytes) -> dict[str, bytes]:
    names = _quoted(lib.functions)
    file = f"{module}.culib"
    init = _INIT.format(
        title=f"CUDA kernels: {', '.join(lib.functions)}.",
        version=version,
        names=names,
        file=file,
        functions="\n".join(f"{one} = _library.{one}" for one in lib.functions),
    )
    operators = [one for one in lib.functions if not _returns_none_in_a_tuple(lib[one])]
    doors = (
        f'{one} = _culaunch.frameworks.torch_op("{module}::{one}", _library.{one})'
        for one in operators
    )
    torch = _TORCH.format(package=module, names=_quoted(operators), functions="\n".join(doors))
    operations = (f"{one} = _culaunch.frameworks.jax_op(_library.{one})" for one in lib.functions)
    jax = _JAX.format(package=module, names=names, functions="\n".join(operations))
    return {
        f"{module}/__init__.py": init.encode(),
        f"{module}/__init__.pyi": stub_text(lib).encode(),
        f"{module}/jax.py": jax.encode(),
        f"{module}/py.typed": b"",
        f"{module}/torch.py": torch.encode(),
        f"{module}/{file}": data,
    }


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{one}"' for one in sorted(names))


def _returns_none_in_a_tuple(function: LoadedFunction) -> bool:
    """Tell whether a backward function has no gradient for some argument.

    No schema of torch has such results. The function is registered together with its forward
    function.
    """
    for _, effects, _ in function._paths():  # noqa: SLF001
        kind, *items = effects[-1].value
        if kind == oc.V_TUPLE and any(one[0] == oc.V_NONE for one in items[0]):
            return True
    return False


def _checked_module(name: str) -> str:
    """Return the package of a distribution."""
    module = re.sub(r"[-.]+", "_", checked_text("name", name))
    if not is_name(name) or not module.isidentifier() or keyword.iskeyword(module):
        raise ValueError(
            "name must be the name of a Python package, of ASCII letters, digits, '-', '_' and "
            f"'.' (got {name!r})"
        )
    if module == "culaunch":
        raise ValueError(f"name must not be 'culaunch', the name of this package (got {name!r})")
    return module


def _checked_line(argument: str, text: str) -> str:
    if not checked_text(argument, text).isprintable():
        raise ValueError(f"{argument} must be one line of printable text (got {text!r:.100})")
    return text


def _description(name: str, module: str, lib: Library) -> str:
    lines = [f"# {name}", "", f"CUDA kernels with their host side, `import {module}`:", ""]
    for one in lib:
        lines += [f"    {line}" for line in str(one).split("\n")]
        lines += [f"        for {kind}" for kind in one.kinds]
    return "\n".join([*lines, ""])


def _base_version() -> str:
    """Return the lowest version of culaunch that reads the library: the release of this one."""
    # An index has no local versions.
    return __version__.partition("+")[0]
