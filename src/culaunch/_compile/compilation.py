"""``compile``: from CUDA source to an image in one call."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Literal

from culaunch._base.checks import checked_flag, checked_list, checked_path, is_text
from culaunch._base.keywords import refuse_keywords
from culaunch._base.similar import did_you_mean
from culaunch._base.source_texts import keep_source_text
from culaunch._base.values import spell
from culaunch._base.waiting import waiting
from culaunch._cache.default import checked_cache
from culaunch._compile.architectures import resolve_arch, with_ptx
from culaunch._compile.diagnostics import warnings_error
from culaunch._compile.headers import as_headers
from culaunch._compile.options import make_options
from culaunch._compile.request import Request
from culaunch._compile.source import read_source
from culaunch._errors import CompileError
from culaunch._image import Image

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from typing_extensions import Never

    from culaunch._cache.cache import Cache
    from culaunch._compile.backend import Backend, Job


def compile(  # noqa: A001
    source: str | os.PathLike[str],
    *,
    arch: str | Iterable[str] | None = None,
    names: Iterable[str] = (),
    headers: Mapping[str, str] | None = None,
    include_dirs: Iterable[str | os.PathLike[str]] = (),
    std: str | None = None,
    defines: Mapping[str, object] | Iterable[str] = (),
    fast_math: bool = False,
    line_info: bool = False,
    debug: bool = False,
    maxrregcount: int | None = None,
    extra_device_vectorization: bool = False,
    device_as_default_execution_space: bool = False,
    relocatable: bool = False,
    lto: bool = False,
    extra_options: Iterable[str] = (),
    warnings_as_errors: bool = False,
    pch: bool = False,
    backend: Literal["nvrtc", "nvcc"] = "nvrtc",
    cache: bool | Cache = True,
    name: str | None = None,
    **unknown: Never,
) -> Image:
    """Compile CUDA source to an image.

    Parameters
    ----------
    source : str or os.PathLike
        Text if it contains a newline, ``;``, ``{`` or ``#``; otherwise a path. The directory of
        that path is searched for headers first.
    arch : str or iterable of str, optional
        ``"sm_90"`` or ``"sm_90a"`` (a cubin), ``"compute_80"`` (PTX), or ``"native"``. Several of
        them give a fatbin, from which the driver selects. The default is the current GPU's
        architecture. Without a GPU it is PTX (``"compute_80"``), which the emulator and newer GPUs
        run.
    names : iterable of str, optional
        Name expressions such as ``"scale<float>"`` or ``"ns::k<4, half>"``. Each is instantiated,
        and ``Image.names`` maps it to its lowered name.
    headers : Mapping[str, str] or Headers, optional
        In-memory headers: text by the name in ``#include``. They take precedence over directories.
    include_dirs : iterable of path, optional
        Directories to search for headers. CUDA's own are found automatically.
    std : str, optional
        The C++ standard, such as ``"c++20"``. The compiler's own by default.
    defines : Mapping[str, object] or iterable of str, optional
        Macros: ``{"N": 4}``, or ``["DEBUG"]`` for macros with the value 1.
    fast_math, line_info, debug : bool, optional
        ``--use_fast_math``, ``--generate-line-info``, ``--device-debug``.
    maxrregcount : int, optional
        The maximum number of registers per thread.
    extra_device_vectorization : bool, optional
        Let the optimizer vectorize more.
    device_as_default_execution_space : bool, optional
        Treat functions without an annotation as ``__device__`` (NVRTC only).
    relocatable : bool, optional
        Make relocatable code for :func:`culaunch.link`.
    lto : bool, optional
        Make LTO-IR (in a fatbin) for :func:`culaunch.link`.
    extra_options : iterable of str, optional
        Options that go to the compiler unchanged. Options that make it print, write files or
        produce something else are refused.
    warnings_as_errors : bool, optional
        Raise if the compiler warns. ``Image.log`` has the compiler's log either way.
    pch : bool, optional
        Keep precompiled headers for the lifetime of this process (NVRTC only).
    backend : "nvrtc" or "nvcc", optional
        The compiler.
    cache : bool or Cache, optional
        True for your cache, False for no cache.
    name : str, optional
        The name of the source in messages and ``__FILE__``. The default is ``kernel.cu`` or the
        file's name.

    Returns
    -------
    Image

    Raises
    ------
    CompileError
        If the compiler refuses the source or an option, or a name does not name a kernel.
    ValueError, TypeError
        If an argument is invalid, for instance an unknown architecture.
    MissingDependencyError
        If the compiler or the headers are not installed; the message has the pip command.
    OSError
        If there is no space for nvcc's files, which are in ``$TMPDIR``.

    Examples
    --------
    >>> image = cl.compile(source, arch="compute_80", names=["scale<float>"])
    >>> image.format, dict(image.names)
    ('ptx', {'scale<float>': '_Z5scaleIfEvPT_PKS0_S0_i'})
    """
    if unknown:
        refuse_keywords("compile", unknown, _KEYWORDS, _OTHER_WORDS)
    # Check everything before looking for a compiler, so wrong arguments are reported even without
    # one.
    unit = read_source(source, name)
    options = make_options(
        std=std,
        defines=defines,
        maxrregcount=maxrregcount,
        extra_options=extra_options,
        fast_math=fast_math,
        line_info=line_info,
        debug=debug,
        extra_device_vectorization=extra_device_vectorization,
        device_as_default_execution_space=device_as_default_execution_space,
        relocatable=relocatable,
        lto=lto,
    )
    checked_flag("warnings_as_errors", warnings_as_errors)
    if not isinstance(backend, str):
        raise TypeError(f"backend must be 'nvrtc' or 'nvcc' (got {spell(backend)})")
    compiler = loaded_backend(backend)
    if checked_flag("pch", pch) and backend != "nvrtc":
        raise ValueError(
            "pch=True needs backend='nvrtc': precompiled headers are a feature of NVRTC"
        )
    archs = resolve_arch(arch)
    if not (relocatable or lto):  # link turns those into loadable images
        archs = with_ptx(archs)
    request = Request(
        unit,
        options,
        compiler,
        archs,
        _checked_names(names),
        as_headers(headers),
        _checked_dirs(include_dirs),
        pch,
    )
    image = _make_image(request, checked_cache(cache))
    if line_info and unit.directory is None:
        keep_source_text(image.data, os.path.basename(unit.name), unit.text)
    # This is outside of the cache: the image is the same either way, and a hit also has the log.
    error = warnings_error(image.log) if warnings_as_errors and image.log else None
    if error is not None:
        raise error
    return image


def _make_image(request: Request, store: Cache | None) -> Image:
    """Return the cached image, or compile and cache it."""
    if store is None:
        return _build(request.job(request.includes()), request.compiler, request.archs)
    try:
        return _find_image(request, store)
    except _NotToBeKeptError as error:
        return error.image


def _find_image(request: Request, store: Cache) -> Image:
    # Try the fastest way first: if the headers' digest is cached and the key's image exists,
    # neither a compiler nor a header is read.
    digest = request.recalled(store)
    image = None if digest is None else store.lookup(request.key(digest))
    if image is not None:
        return image
    includes = request.includes(store)

    def make() -> Image:
        image = _build(request.job(includes), request.compiler, request.archs)
        # The compiler may have read newer files than those in the key.
        if includes.unknown or includes.footprint.renewed() is None:
            raise _NotToBeKeptError(image)
        return image

    # A source whose headers cannot all be followed has no key, because changes would go unnoticed.
    return make() if includes.unknown else store.get_or_make(request.key(includes.digest), make)


def _build(job: Job, compiler: Backend, archs: Sequence[str]) -> Image:
    compiler.check_archs(archs)
    parts = []
    with waiting(f"compiling {job.name}") as show:
        for number, arch in enumerate(archs, 1):
            show(f"compiling {job.name} for {arch} ({number} of {len(archs)})")
            parts.append(compiler.compile(job, arch))
    names = dict(parts[0].names)
    for part in parts[1:]:
        if part.names != names:
            raise CompileError(
                f"names are lowered differently for {parts[0].arch} and {part.arch}; "
                "compile each architecture separately"
            )
    if len(parts) == 1 and parts[0].kind != "ltoir":
        data = parts[0].data
    else:
        from culaunch._compile.fatbins import combine

        data = combine(parts, job.name)
    # If several architectures have a signature, use the first one's; they hardly ever differ.
    signatures = {
        name: types for part in reversed(parts) for name, types in part.signatures.items()
    }
    log = "\n".join(dict.fromkeys(part.log for part in parts if part.log))
    return Image(data, names=names, signatures=signatures, log=log)


def _checked_names(names: Iterable[str]) -> tuple[str, ...]:
    given = checked_list("names", names, "name expressions")
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"names must contain only str (got {spell(name)})")
        if not name.strip() or "\n" in name or not is_text(name):
            raise ValueError(f"names has {name!r}, which is not a name expression")
    return tuple(dict.fromkeys(given))


def _checked_dirs(dirs: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    given = checked_list("include_dirs", dirs, "directories")
    for directory in given:
        checked_path("include_dirs", directory)
    checked = tuple(os.path.abspath(os.fsdecode(directory)) for directory in given)
    for directory in checked:
        if not os.path.isdir(directory):
            raise NotADirectoryError(f"include_dirs has {directory!r}, which is not a directory")
    return checked


# The names that other libraries and compilers use for the arguments of compile.
_OTHER_WORDS = {
    "architecture": "arch", "code": "source", "define_macro": "defines", "fastmath": "fast_math",
    "gpu_arch": "arch", "include_path": "include_dirs", "include_paths": "include_dirs",
    "includes": "include_dirs", "lineinfo": "line_info", "name_expressions": "names",
    "nvcc_options": "extra_options", "options": "extra_options", "rdc": "relocatable",
    "use_fast_math": "fast_math",
}  # fmt: skip
_KEYWORDS = tuple(compile.__kwdefaults__ or ())


@functools.cache
def loaded_backend(name: str) -> Backend:
    if name == "nvrtc":
        from culaunch._compile.nvrtc import Nvrtc

        return Nvrtc()
    if name == "nvcc":
        from culaunch._compile.nvcc import Nvcc

        return Nvcc()
    meant = did_you_mean(name, ("nvrtc", "nvcc")) if isinstance(name, str) else ""
    raise ValueError(f"backend must be 'nvrtc' or 'nvcc' (got {name!r}){meant}")


class _NotToBeKeptError(Exception):
    """An image that the key may not identify: headers changed, or are unknown."""

    def __init__(self, image: Image) -> None:
        super().__init__("not to be kept")
        self.image = image
