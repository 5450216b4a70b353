"""The functions that culaunch's headers only declare: compiled once, for all libraries."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from culaunch._base.compiler_files import write_text
from culaunch._cache.libraries import Libraries
from culaunch._inline.keys import key_of
from culaunch._inline.reads import Reads
from culaunch._inline.units import Unit, compile_unit

if TYPE_CHECKING:
    from culaunch._inline.toolchain import Toolchain

_NAME = "culaunch_implementation"
_TEXT = "#include <culaunch/implementation.h>\n"


def implementation(
    toolchain: Toolchain, build_directory: str | os.PathLike[str] | None
) -> Unit | None:
    """Return the object file of this toolchain, from the libraries' directory or compiled now.

    None: each file compiles these functions.
    """
    command = toolchain.implementation
    if command is None:
        return None

    def build(place: str) -> tuple[str, Reads]:
        path = os.path.join(place, _NAME + ".cpp")
        write_text(path, _TEXT)
        unit = compile_unit(path, command, place, {}, is_nvcc=False)
        return unit.object_file, unit.reads

    key = key_of([_TEXT, *toolchain.identity_of_implementation()])
    cache = Libraries.at(build_directory, _NAME, key, Reads.from_json, is_part=True)
    found = cache.find() or cache.build(build)
    return Unit(found.path, cast("Reads", found.reads))
