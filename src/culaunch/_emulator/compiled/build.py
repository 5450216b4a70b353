"""Compile the C of a kernel, once for all processes."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import hashlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._cache.libraries import Libraries

if TYPE_CHECKING:
    from culaunch._cache.libraries import Library
    from culaunch._emulator.kernel_code import KernelCode

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


class Built:
    """The library of a kernel, which is found or built.

    Parameters
    ----------
    kernel : KernelCode
    """

    def __init__(self, kernel: KernelCode) -> None:
        compiler = find_compiler()
        if compiler is None:
            raise FileNotFoundError("no C compiler (cc, gcc, clang) on PATH, or in CC")
        # The flags of CC come last, because they may ask for less optimization.
        self._compiler, self._last = compiler[0], [*_FLAGS, *_processor_flags(), *compiler[1:]]
        # The C is made from these. Making it takes longer than finding the library.
        parts = ["\n".join(kernel.module.image.tokens.source), kernel.entry.name]
        parts += [repr(kernel.checks), _sources(), np.__version__]
        parts += [*compiler, *self._last, _identity(compiler[0])]
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        name = f"emulated-{kernel.entry.name}"
        libraries = Libraries.at(None, name, key, lambda _: _NoHeaders())
        self._libraries = dataclasses.replace(libraries, server=None)

    @property
    def exists(self) -> bool:
        """Whether the library is in the cache."""
        return self._libraries.find() is not None

    def find(self) -> ctypes.PyDLL | None:
        """Load the library if it is in the cache."""
        found = self._libraries.find()
        return None if found is None else _loaded(found)

    def build(self, text: str) -> ctypes.PyDLL:
        """Compile the C of the kernel, and load it.

        Raises
        ------
        OSError, subprocess.CalledProcessError
            If the compiler fails.
        """
        level, text = ("-O2", text) if len(text) < _LONG else ("-O1", _OMIT + text)

        def compile_in(place: str) -> tuple[str, _NoHeaders]:
            source = os.path.join(place, "kernel.c")
            target = os.path.join(place, self._libraries.name + ".so")
            Path(source).write_text(text, encoding="utf-8")
            command = [self._compiler, level, *self._last, "-o", target, source, "-lm"]
            subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - the user's
            return target, _NoHeaders()

        return _loaded(self._libraries.build(compile_in))


def is_built(kernel: KernelCode) -> bool:
    """Tell whether the cache has the library of a kernel."""
    with contextlib.suppress(OSError):
        return Built(kernel).exists
    return False


def _loaded(found: Library) -> ctypes.PyDLL:
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
def _sources() -> str:
    """Return an identity of the emulator's files that changes when one of them does."""
    files = sorted(Path(__file__).parents[1].rglob("*.[cp]*"))
    found = [f"{one}:{stat.st_size}:{stat.st_mtime_ns}" for one in files if (stat := one.stat())]
    return hashlib.sha256("\0".join(found).encode()).hexdigest()


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
