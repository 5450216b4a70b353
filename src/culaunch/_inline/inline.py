"""C++ text, with images inside, to functions that take any framework's arrays."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_path
from culaunch._base.driver_choice import driver_choice
from culaunch._base.fork_lock import ForkLock
from culaunch._base.outputs import write_output
from culaunch._base.values import spell
from culaunch._base.waiting import waiting
from culaunch._cache.libraries import Libraries
from culaunch._embed.image_stream import image_bytes
from culaunch._errors import MissingDependencyError
from culaunch._image import Image
from culaunch._inline.building import build_library
from culaunch._inline.checks import check_functions, check_images
from culaunch._inline.keys import key_of
from culaunch._inline.options import with_extra
from culaunch._inline.reads import Reads
from culaunch._inline.texts import InlineSource, including, names_of
from culaunch._inline.toolchain import Toolchain
from culaunch._launch import driver_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tvm_ffi import Module

    from culaunch._cache.libraries import Library

_NAME = re.compile(r"[A-Za-z0-9_]+\Z")
# Changes whenever the same key would stand for another library, or its note would say other things.
_SCHEMA = "4"

# The modules that this process has loaded: key to the library's path and the module.
loaded_modules: dict[tuple[str, str], tuple[Library, Module]] = {}
_lock = ForkLock()


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str] | None = None,
    cuda_sources: str | Sequence[str] | None = None,
    *,
    embed_cubin: Mapping[str, str | os.PathLike[str] | bytes | Image] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    include_dirs: Sequence[str | os.PathLike[str]] = (),
    flags: Sequence[str] = (),
    cuda_flags: Sequence[str] = (),
    link_flags: Sequence[str] = (),
    arch: str | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    **extra: Any,
) -> Module:
    """Compile C++ with the images it embeds, and load it as a module of Apache TVM-FFI.

    The functions of the module take and return arrays of PyTorch, JAX, CuPy and NumPy. The code can
    use ``culaunch/culaunch.h`` and ``culaunch/tvm_ffi.h``, which are already included.

    The library is built once for its content: the sources, the images, all headers that they
    include, the flags and the compiler. Later calls find it again, in this process or in another
    one. A process that builds at the same moment waits.

    Parameters
    ----------
    name : str
        The module's name: letters, digits and underscores.
    cpp_sources : str or sequence of str, optional
        C++17; several texts are joined.
    cuda_sources : str or sequence of str, optional
        CUDA C++ for nvcc, linked with the CUDA runtime. Host code needs no nvcc.
    embed_cubin : Mapping, optional
        The name in ``CULAUNCH_EMBED_CUBIN(name)`` (or ``TVM_FFI_EMBED_CUBIN``) to an image: a path,
        bytes or :class:`Image`.
    functions : str, sequence of str or Mapping, optional
        Names of C++ functions to export, or a mapping of names to docstrings. Instead or in
        addition, the code may use ``CULAUNCH_EXPORT(name, function)`` or
        ``TVM_FFI_DLL_EXPORT_TYPED_FUNC``.
    headers : Mapping, optional
        The name in ``#include`` to text.
    include_dirs : sequence of str or os.PathLike, optional
        Directories to search for headers.
    flags, cuda_flags, link_flags : sequence of str, optional
        Further options for the C++ compiler, for nvcc and for the linker.
    arch : str, optional
        The architecture for `cuda_sources`, such as ``"sm_90a"``; the local GPU's by default.
    build_directory : str or os.PathLike, optional
        The directory for the built library; your cache by default (``CULAUNCH_CACHE_DIR``). It must
        belong to you or to root, and must not be group- or world-writable. Otherwise a
        :class:`CacheWarning` says so, and only this process uses the library.
    extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths : sequence of str, optional
        The same as `flags`, `cuda_flags`, `link_flags` and `include_dirs`, in the spelling of
        ``tvm_ffi.cpp.load_inline`` and PyTorch. They come after those.

    Returns
    -------
    tvm_ffi.Module
        The module. It lives as long as the process.

    Raises
    ------
    CompileError
        If there is no compiler, or one fails. The message has its command and complete output.
    ImageError
        If an image is invalid, or no source embeds its name.
    TypeError, ValueError
        If an argument is invalid. Also if the code embeds a name without an image in `embed_cubin`,
        or `functions` names a function that the code does not have.
    MissingDependencyError
        If apache-tvm-ffi or ``cuda.h`` is missing.
    OSError
        If there is no space for a compiler's files.

    Examples
    --------
    >>> text = "double twice(double x) { return 2 * x; }"
    >>> module = cl.cpp.load_inline("twice", text, functions="twice")
    >>> module.twice(21.0)
    42.0
    """
    tvm_ffi = _tvm_ffi("load_inline")
    request = _Request.of(
        "load_inline",
        name,
        cpp_sources,
        cuda_sources,
        functions=functions,
        headers=headers,
        embed_cubin=embed_cubin,
        build_directory=build_directory,
        arch=arch,
        extra=extra,
        include_dirs=include_dirs,
        flags=flags,
        cuda_flags=cuda_flags,
        link_flags=link_flags,
    )
    cache, key = request.cache, request.key
    # Loaded twice, a library would register its functions twice. A changed source is another
    # library.
    with _lock:
        known = loaded_modules.get((cache.directory, key))
    if known is not None and known[0].reads.is_current():
        return known[1]
    library = request.find_or_build()
    if driver_choice() == "emulator":
        # C++ finds the emulator where Python started it, and only there.
        driver_name()
    # Between the look and the load nothing holds it.
    if not os.path.exists(library.path):
        # Another process emptied the cache since.
        library = request.find_or_build()
    module: Module = tvm_ffi.load_module(library.path)
    library.loaded()
    with _lock:
        loaded_modules[cache.directory, key] = (library, module)
    return module


def build_inline(
    name: str,
    cpp_sources: str | Sequence[str] | None = None,
    cuda_sources: str | Sequence[str] | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    embed_cubin: Mapping[str, str | os.PathLike[str] | bytes | Image] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    include_dirs: Sequence[str | os.PathLike[str]] = (),
    flags: Sequence[str] = (),
    cuda_flags: Sequence[str] = (),
    link_flags: Sequence[str] = (),
    arch: str | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    **extra: Any,
) -> Path:
    """Compile C++ as :func:`culaunch.cpp.load_inline` does, and load nothing.

    Parameters
    ----------
    name, cpp_sources, cuda_sources, embed_cubin, functions, headers, include_dirs
        As for :func:`culaunch.cpp.load_inline`.
    flags, cuda_flags, link_flags, arch, build_directory
        As for :func:`culaunch.cpp.load_inline`.
    output : str or os.PathLike, optional
        Where to write the library. By default it stays in the cache, from which it may be evicted.

    Returns
    -------
    pathlib.Path
        The library, as an absolute path: ``tvm_ffi.load_module(path)`` and C++ without Python load
        it.

    Raises
    ------
    CompileError, ImageError, TypeError, ValueError, MissingDependencyError
        As :func:`culaunch.cpp.load_inline`.
    OSError
        If the output cannot be written, or there is no space for a compiler's files.

    Examples
    --------
    >>> text = "double twice(double x) { return 2 * x; }"
    >>> library = cl.cpp.build_inline("twice", text, functions="twice", output="twice.so")
    """
    _tvm_ffi("build_inline")
    if output is not None:
        checked_path("output", output)
    request = _Request.of(
        "build_inline",
        name,
        cpp_sources,
        cuda_sources,
        functions=functions,
        headers=headers,
        embed_cubin=embed_cubin,
        build_directory=build_directory,
        arch=arch,
        extra=extra,
        include_dirs=include_dirs,
        flags=flags,
        cuda_flags=cuda_flags,
        link_flags=link_flags,
    )
    library = request.find_or_build()
    if output is None:
        return Path(library.path)
    with open(library.path, "rb") as file:
        write_output(checked_path("output", output), file.read())
    # Make it absolute: the loader would look for "x.so" in the system's library directories.
    return Path(output).absolute()


def build(
    name: str,
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    output: str | os.PathLike[str] | None = None,
    embed_cubin: Mapping[str, str | os.PathLike[str] | bytes | Image] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    include_dirs: Sequence[str | os.PathLike[str]] = (),
    flags: Sequence[str] = (),
    cuda_flags: Sequence[str] = (),
    link_flags: Sequence[str] = (),
    arch: str | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    **extra: Any,
) -> Path:
    """Compile files of C++ and CUDA C++ to a library of functions, and load nothing.

    Files are compiled in place: includes beside them are found, and messages and debuggers name
    them. Files of one language are compiled together, as one text.

    Parameters
    ----------
    name : str
        The library's name: letters, digits and underscores.
    sources : str, os.PathLike or sequence of them
        The files. Those that end in ``.cu`` are for nvcc.
    output, embed_cubin, functions, include_dirs, flags, cuda_flags, link_flags, arch, \
build_directory
        As for :func:`culaunch.cpp.build_inline`.

    Returns
    -------
    pathlib.Path
        The library, as an absolute path: ``tvm_ffi.load_module(path)`` and C++ without Python load
        it.

    Raises
    ------
    CompileError, ImageError, TypeError, ValueError, MissingDependencyError
        As :func:`culaunch.cpp.load_inline`.
    OSError
        If a source is not there, or the output cannot be written.

    Examples
    --------
    >>> _ = Path("twice.cpp").write_text(
    ...     "double Twice(double x) { return 2 * x; } CULAUNCH_EXPORT(twice, Twice);"
    ... )
    >>> library = cl.cpp.build("twice", "twice.cpp", output="twice.so")
    """
    cpp, cuda = including(sources)
    return build_inline(
        name,
        cpp,
        cuda,
        output=output,
        embed_cubin=embed_cubin,
        functions=functions,
        include_dirs=include_dirs,
        flags=flags,
        cuda_flags=cuda_flags,
        link_flags=link_flags,
        arch=arch,
        build_directory=build_directory,
        **extra,
    )


@dataclass(frozen=True)
class _Request:
    """The library to build, and its place in the cache."""

    source: InlineSource
    functions: list[str]
    images: Mapping[str, Image]
    toolchain: Toolchain
    options: Mapping[str, Any]
    key: str
    cache: Libraries
    build_directory: str | os.PathLike[str] | None

    @classmethod
    def of(
        cls,
        verb: str,
        name: str,
        cpp_sources: str | Sequence[str] | None,
        cuda_sources: str | Sequence[str] | None,
        *,
        functions: str | Sequence[str] | Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        embed_cubin: object,
        build_directory: str | os.PathLike[str] | None,
        arch: str | None,
        extra: Mapping[str, object],
        **options: Any,
    ) -> _Request:
        """Check the arguments that both verbs take; `extra` has options by others' names."""
        source = InlineSource.of(name, cpp_sources, cuda_sources, functions, headers)
        options = with_extra(verb, options, extra)
        if not isinstance(name, str) or not _NAME.match(name):
            raise ValueError(f"name must be letters, digits and underscores (got {spell(name)})")
        images = _opened({} if embed_cubin is None else embed_cubin)
        if build_directory is not None:
            checked_path("build_directory", build_directory)
        for argument, value in (("arch", arch), ("cuda_flags", options["cuda_flags"])):
            if source.cuda is None and value:
                raise ValueError(
                    f"{argument} applies only to cuda_sources, but there are none (got "
                    f"{spell(value)})"
                )
        toolchain = Toolchain.find(**options, arch=arch, with_nvcc=source.cuda is not None)
        key = _key(source, images, toolchain)
        cache = Libraries.at(build_directory, name, key, Reads.from_json)
        named = names_of(functions)
        return cls(source, named, images, toolchain, options, key, cache, build_directory)

    def find_or_build(self) -> Library:
        """Return the library, built by now."""
        if (found := self.cache.find()) is not None:
            return found
        check_images(self.source, self.images, self.options["link_flags"])
        includes = (
            *self.options["include_dirs"],
            *self.options["flags"],
            *self.options["cuda_flags"],
        )
        check_functions(self.source, self.functions, includes)
        return self.cache.build(
            lambda place: build_library(
                place,
                self.source,
                self.images,
                self.toolchain,
                self.cache.directory,
                self.build_directory,
            )
        )


def _tvm_ffi(verb: str) -> Any:
    try:
        with waiting("importing tvm_ffi"):  # which imports PyTorch if that is installed
            return importlib.import_module("tvm_ffi")
    except ImportError as error:
        raise MissingDependencyError(
            f"{verb} needs apache-tvm-ffi: python -m pip install 'culaunch[embed]'"
        ) from error


def _opened(images: object) -> dict[str, Image]:
    if not isinstance(images, Mapping):
        raise TypeError(f"embed_cubin must map names to images (got {spell(images)})")
    for name in images:
        if not isinstance(name, str) or not _NAME.match(name):
            raise ValueError(f"a name in embed_cubin must be a C identifier (got {spell(name)})")
    return {name: Image.open(image) for name, image in images.items()}


def _key(source: InlineSource, images: Mapping[str, Image], toolchain: Toolchain) -> str:
    """Return the hash of all that is known before the headers are."""
    parts = [_SCHEMA, *source.identity(), *toolchain.identity()]
    parts += [
        f"{key}={hashlib.sha256(image_bytes(images[key])).hexdigest()}" for key in sorted(images)
    ]
    return key_of(parts)
