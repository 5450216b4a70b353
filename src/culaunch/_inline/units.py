"""One unit of C++ or CUDA C++ to an object file, and the files that it reads."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._base.compiler_files import little_room, no_room
from culaunch._errors import CompileError
from culaunch._inline.checks import hint_of_failure
from culaunch._inline.reads import Reads, host_search, unit_reads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from culaunch._image import Image


@dataclass(frozen=True)
class Unit:
    """A compiled unit."""

    object_file: str
    reads: Reads


def compile_unit(
    path: str,
    command: Sequence[str],
    directory: str,
    images: Mapping[str, Image],
    *,
    is_nvcc: bool,
) -> Unit:
    """Compile a file of the build in `directory`, to an object file beside it.

    `images` are the embedded ones, for hints at the reason of a failure.
    """
    object_file, depfile = path + ".o", path + ".d"
    search = host_search(command, directory, is_nvcc=is_nvcc)
    # Before the compiler reads the files, so later changes are detected.
    reads = unit_reads(path, search, directory)
    # The compiler itself reports the files that it read. These include files named by macros,
    # which no text scan finds.
    run_compiler(
        [*command, "-MD", "-MF", depfile, "-c", path, "-o", object_file], directory, images
    )
    return Unit(object_file, reads.with_files(_dependencies(depfile, directory), search))


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
    return sorted({path for path in paths if not path.startswith(directory + os.sep)})
