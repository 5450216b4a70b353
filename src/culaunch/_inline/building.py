"""Compile, embed, link: from source texts to a shared library and its dependencies."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

from culaunch._base.compiler_files import little_room, no_room
from culaunch._base.waiting import waiting
from culaunch._embed.embedding import embed
from culaunch._embed.merging import asks_for
from culaunch._embed.symbols import PREFIXES, symbol_names
from culaunch._errors import CompileError, ImageError
from culaunch._includes.footprint import joined
from culaunch._inline.checks import hint_of_failure
from culaunch._inline.reads import Reads, host_search, unit_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from culaunch._image import Image
    from culaunch._includes.footprint import Footprint
    from culaunch._includes.host import HostSearch
    from culaunch._inline.texts import InlineSource
    from culaunch._inline.toolchain import Toolchain


def build_library(
    directory: str,
    source: InlineSource,
    images: Mapping[str, Image],
    toolchain: Toolchain,
    kept: str,
) -> tuple[str, Reads]:
    """Build in an empty directory; return the library's path and its dependencies.

    In messages at run time and for debuggers the sources are where they are kept afterwards.
    """
    with waiting(f"building {source.name}") as show:
        return _build(directory, source, images, toolchain, kept, show)


def _build(
    directory: str,
    source: InlineSource,
    images: Mapping[str, Image],
    toolchain: Toolchain,
    kept: str,
    show: Callable[[str], None],
) -> tuple[str, Reads]:
    cpp, cuda = source.write(directory)
    objects: list[str] = []
    files: set[str] = set()
    searches: list[HostSearch] = []
    footprints: list[Footprint] = []
    is_known = True
    for unit, command in ((cpp, toolchain.cxx), (cuda, toolchain.nvcc)):
        if unit is None or command is None:
            continue
        object_file, depfile = unit + ".o", unit + ".d"
        include = f"-I{os.path.join(directory, 'include')}"
        search = host_search([*command, include], directory, is_nvcc=unit is cuda)
        # Before the compiler reads the files, so later changes are detected.
        reads = unit_reads(unit, search, directory)
        # The compiler itself reports the files that it read. These include files named by macros,
        # which no text scan finds.
        own = [include, "-MD", "-MF", depfile]
        if unit is cpp:
            # Messages and debuggers name the final place of the library, because the build
            # directory is removed.
            own.append(f"-ffile-prefix-map={directory}={kept}")
        show(f"building {source.name}: {os.path.basename(command[0])} compiles it")
        run_compiler([*command, *own, "-c", unit, "-o", object_file], directory, images)
        objects.append(object_file)
        files.update(_dependencies(depfile, directory))
        searches.append(search)
        footprints.append(reads.footprint)
        is_known = is_known and reads.is_known
    for name, image in images.items():
        _embed(name, image, objects, source.name)
    library = os.path.join(directory, f"{source.name}.so")
    # Objects before libraries: a linker only takes symbols that are undefined by then.
    compiler, *rest = toolchain.link
    run_compiler([compiler, *objects, *rest, "-o", library], directory, images)
    reads = Reads(joined(footprints), is_known).with_files(sorted(files), searches)
    return library, reads


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


def run_compiler(command: Sequence[str], directory: str, images: Mapping[str, Image]) -> None:
    done = subprocess.run(  # noqa: S603  (a list of words, no shell)
        command, cwd=directory, capture_output=True, text=True, errors="replace", check=False,
        # The compiler's temporary files are removed with the directory.
        env={**os.environ, "TMPDIR": directory},
    )  # fmt: skip
    if done.returncode == 0:
        return
    # The compiler's messages contain the temporary path, which no longer exists when they are read.
    said = (done.stderr + done.stdout).replace(directory + os.sep, "")
    name = os.path.basename(command[0])
    full = no_room(name, said, directory)
    if full is not None:
        raise full
    little = little_room(directory)
    raise CompileError(
        f"{name} failed with code {done.returncode}\n"
        f"command: {' '.join(command)}\n{said.rstrip()}{hint_of_failure(said, images)}"
        f"{little and chr(10)}{little}",
        log=said,
    )


def _dependencies(depfile: str, directory: str) -> list[str]:
    """Return the files in a compiler's dependency file, except files of the build itself."""
    with open(depfile, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read().replace("\\\n", " ")
    # A rule of make: "target: file file\ with\ spaces ..."; a dollar is doubled.
    words = re.findall(r"(?:\\.|[^\s\\])+", text.split(": ", 1)[1])
    paths = [re.sub(r"\\(.)", r"\1", word).replace("$$", "$") for word in words]
    paths = [os.path.abspath(os.path.join(directory, path)) for path in paths]
    return [path for path in paths if not path.startswith(directory + os.sep)]
