"""Compile, embed, link: from source texts to a shared library and its dependencies."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from culaunch._base.waiting import waiting
from culaunch._embed.embedding import embed
from culaunch._embed.merging import asks_for
from culaunch._embed.symbols import PREFIXES, symbol_names
from culaunch._errors import ImageError
from culaunch._inline.implementation import implementation
from culaunch._inline.reads import joined_reads
from culaunch._inline.units import compile_unit, run_compiler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from culaunch._image import Image
    from culaunch._inline.reads import Reads
    from culaunch._inline.texts import InlineSource
    from culaunch._inline.toolchain import Toolchain
    from culaunch._inline.units import Unit


def build_library(
    directory: str,
    source: InlineSource,
    images: Mapping[str, Image],
    toolchain: Toolchain,
    kept: str,
    build_directory: str | os.PathLike[str] | None = None,
) -> tuple[str, Reads]:
    """Build in an empty directory; return the library's path and its dependencies.

    In messages at run time and for debuggers the sources are where they are kept afterwards. The
    object file that all libraries share is in `build_directory`, by default in this user's cache.
    """
    with waiting(f"building {source.name}") as show:
        with ThreadPoolExecutor(1) as others:
            # Beside the user's code, because the first build needs both.
            own = others.submit(implementation, toolchain, build_directory)
            units = _compile(directory, source, images, toolchain, kept, show)
            if (shared := own.result()) is not None:
                units.append(shared)
        library = os.path.join(directory, f"{source.name}.so")
        # Objects before libraries: a linker only takes symbols that are undefined by then.
        compiler, *rest = toolchain.link
        objects = [unit.object_file for unit in units]
        run_compiler([compiler, *objects, *rest, "-o", library], directory, images)
    return library, joined_reads(unit.reads for unit in units)


def _compile(
    directory: str,
    source: InlineSource,
    images: Mapping[str, Image],
    toolchain: Toolchain,
    kept: str,
    show: Callable[[str], None],
) -> list[Unit]:
    cpp, cuda = source.write(directory)
    headers = f"-I{os.path.join(directory, 'include')}"
    # Messages and debuggers name the final place of the sources, because the build directory is
    # removed.
    moved = f"-ffile-prefix-map={directory}={kept}"
    units = []
    for path, command, options in (
        (cpp, toolchain.cxx, [headers, moved]),
        (cuda, toolchain.nvcc, [headers]),
    ):
        if path is not None and command is not None:
            show(f"building {source.name}: {os.path.basename(command[0])} compiles it")
            words = [*command, *options]
            units.append(compile_unit(path, words, directory, images, is_nvcc=path is cuda))
    for name, image in images.items():
        _embed(name, image, [unit.object_file for unit in units], source.name)
    return units


def _embed(name: str, image: Image, objects: Sequence[str], module: str) -> None:
    """Put an image into every object that embeds its name, with any macro."""
    found = False
    for path in objects:
        for style in PREFIXES:
            # After preprocessing, the symbols that an object needs identify TVM-FFI's macros and
            # ours.
            if asks_for(path, symbol_names(style, name)):
                embed(image, path, name, merge_with=path, symbol_style=style)
                found = True
    if not found:
        raise ImageError(
            f"embed_cubin has {name!r}, but no source of {module!r} uses it: write "
            f'CULAUNCH_EMBED_CUBIN({name}); and CULAUNCH_GET_KERNEL({name}, "...")'
        )
