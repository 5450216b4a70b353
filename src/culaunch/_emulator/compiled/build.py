"""Compile the C of a kernel, once for all processes."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import hashlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from culaunch._cache.libraries import Libraries

# -ffp-contract: a * b + c rounds twice, as PTX says. No option here lets a compiler change values.
_FLAGS = (
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fwrapv",
    "-ftree-vectorize",
    "-fno-trapping-math",
    "-shared",
    "-fPIC",
    "-pthread",
    "-w",
)

# -O2 takes twice as long as -O1 for a longer text, and makes it a tenth faster.
_LONG = 200_000
# These take a fifth of the compiler's time there, and the code is no faster.
_OMIT = '#pragma GCC optimize("no-ivopts,no-dse,no-tree-slp-vectorize")\n'


def build(name: str, text: str) -> ctypes.PyDLL:
    """Return the loaded library of a text.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        If there is no compiler, or it fails.
    """
    compiler = find_compiler()
    if compiler is None:
        raise FileNotFoundError("no C compiler (cc, gcc, clang) on PATH, or in CC")
    # The flags of CC come last, because they may ask for less optimization.
    level, text = ("-O2", text) if len(text) < _LONG else ("-O1", _OMIT + text)
    command = [compiler[0], level, *_FLAGS, *_processor_flags(), *compiler[1:]]
    key = hashlib.sha256("\0".join([text, *command, _identity(compiler[0])]).encode()).hexdigest()
    libraries = dataclasses.replace(
        Libraries.at(None, f"emulated-{name}", key, lambda _: _NoHeaders()), server=None
    )

    def compile_in(place: str) -> tuple[str, _NoHeaders]:
        source, target = (
            os.path.join(place, "kernel.c"),
            os.path.join(place, libraries.name + ".so"),
        )
        Path(source).write_text(text, encoding="utf-8")
        subprocess.run(  # noqa: S603 - the compiler that the user has
            [*command, "-o", target, source, "-lm"], check=True, capture_output=True, text=True
        )
        return target, _NoHeaders()

    found = libraries.find() or libraries.build(compile_in)
    # Python's lock is kept: the kernel itself lets other threads run now and then, and a signal's
    # exception needs it.
    library = ctypes.PyDLL(found.path)
    found.loaded()
    return library


def find_compiler() -> list[str] | None:
    """Return the C compiler: the words of ``CC``, else the first that there is."""
    chosen = os.environ.get("CC")
    for words in [shlex.split(chosen)] if chosen else [["cc"], ["gcc"], ["clang"]]:
        if words and (program := shutil.which(words[0])):
            return [program, *words[1:]]
    return None


class _NoHeaders:
    """The headers that a build reads: only headers of the C library."""

    state = "none".ljust(16, "-")

    def is_current(self) -> bool:
        """Tell that it is."""
        return True

    def as_json(self) -> Any:
        """Return nothing."""
        return []


@functools.cache
def _identity(program: str) -> str:
    """Return an identity that changes when an update replaces the compiler."""
    found = os.stat(os.path.realpath(program))
    return f"{program}:{found.st_size}:{found.st_mtime_ns}"


@functools.cache
def _processor_flags() -> tuple[str, ...]:
    """Use the processor's vectors and fused multiply-adds, which give the same bits sooner."""
    try:
        words = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return ()
    known = ("fma", "avx2") if os.uname().machine == "x86_64" else ()
    return tuple(f"-m{word}" for word in known if word in words)
