"""``link``: device-LTO, relocatable and PTX images to one finished image, with nvJitLink."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from culaunch._base.checks import checked_flag, checked_path
from culaunch._base.elf import EM_CUDA, MAGIC
from culaunch._base.nvidia_libraries import needed
from culaunch._base.values import spell
from culaunch._base.waiting import waiting
from culaunch._cache.default import checked_cache
from culaunch._compile.architectures import resolve_arch, with_ptx
from culaunch._compile.backend import Compiled
from culaunch._compile.options import check_register_count, checked_extra_options
from culaunch._core import link_images, open_nvjitlink, set_pip_folders
from culaunch._errors import CompileError, ImageError
from culaunch._image import Image, inspect
from culaunch._image.files import check_path

if TYPE_CHECKING:
    from culaunch._cache.cache import Cache

    Input = str | os.PathLike[str] | bytes | Image

_ARCHIVE = b"!<arch>\n"

# Increase it when the same key would mean a different image, or a different key the same image.
_SCHEMA = 1


def link(
    images: Input | Iterable[Input],
    *,
    arch: str | Iterable[str] | None = None,
    line_info: bool = False,
    debug: bool = False,
    maxrregcount: int | None = None,
    extra_options: Iterable[str] = (),
    cache: bool | Cache = True,
) -> Image:
    """Link images to a finished one; a single PTX image becomes a cubin.

    Parameters
    ----------
    images : path, bytes, Image, or iterable of them
        Images compiled with ``lto=True`` or ``relocatable=True``, PTX, and paths of host objects
        and static libraries with device code (such as ``libcudadevrt.a``).
    arch : str or iterable of str, optional
        ``"sm_90"``, or several for a fatbin; ``"compute_90"`` for PTX, if every image was
        compiled with ``lto=True``. By default the current GPU's. PTX is added if the driver is the
        emulator.
    line_info, debug : bool, optional
        Keep line or debug information.
    maxrregcount : int, optional
        The maximum number of registers per thread.
    extra_options : iterable of str, optional
        Options passed to nvJitLink as they are.
    cache : bool or Cache, optional
        True for the user's cache, False for none.

    Returns
    -------
    Image
        With the names and signatures of all inputs.

    Raises
    ------
    CompileError
        If nvJitLink refuses, or two images define the same; the message has the log.
    ImageError
        If an input is not an image.
    OSError
        If a file cannot be read.
    ValueError, TypeError
        If an argument is invalid:  no images, PTX of images without LTO-IR.
    MissingDependencyError
        If nvJitLink is not installed; the message has the pip command.

    Examples
    --------
    >>> twice = "__device__ float twice(float x) { return 2 * x; }"
    >>> run = 'extern "C" __global__ void run(float* x) { *x = twice(*x); }'
    >>> declaration = "__device__ float twice(float x);"
    >>> parts = [cl.compile(twice, lto=True), cl.compile(declaration + run, lto=True)]
    >>> kernel = cl.load(cl.link(parts))["run"]
    """
    # Read the inputs only once, so the same bytes are checked, used in the key, and linked.
    inputs = _read_inputs(images)
    is_lto = all(lto for *_, lto in inputs)
    # Machine code is for a device of this machine. PTX may be for any device.
    archs = resolve_arch("native" if arch is None and not is_lto else arch)
    if is_lto:
        archs = with_ptx(archs)
    for one in archs:
        if not one.startswith("sm_") and not is_lto:
            raise ValueError(
                f"{f'arch has {one!r}' if arch is not None else 'the emulator executes PTX'}: only "
                "images compiled with lto=True can be linked to PTX; compile all of them so"
                f"{', or name an architecture sm_...' if arch is not None else ''}"
            )
    check_register_count(maxrregcount)
    extra = checked_extra_options(extra_options)
    options = ["-g"] * checked_flag("debug", debug)
    options += ["-lineinfo"] * checked_flag("line_info", line_info)
    if maxrregcount is not None:
        options.append(f"-maxrregcount={maxrregcount}")
    if any(is_lto for *_, is_lto in inputs):
        options.append("-lto")
    # These are nvJitLink's own options, even if compile() has keywords for them.
    options += extra
    merged = [data for _, data, _ in inputs if isinstance(data, Image)]
    names = {name: lowered for image in merged for name, lowered in image.names.items()}
    signatures = {kernel: types for image in merged for kernel, types in image.signatures.items()}

    nvjitlink, identity = opened_nvjitlink()

    def make() -> Image:
        given = [
            (kind, _bytes(data), _where(index, data))
            for index, (kind, data, _) in enumerate(inputs)
        ]
        what, parts = f"linking {len(inputs)} image{'s' * (len(inputs) > 1)}", []
        with waiting(what) as show:
            for number, one in enumerate(archs, 1):
                show(f"{what} for {one} ({number} of {len(archs)})")
                data, log = link_images(nvjitlink, given, one, options)
                kind = "ptx" if one.startswith("compute_") else "cubin"
                parts.append(Compiled(one, kind, data, log=log))
        if len(parts) == 1:
            data = parts[0].data
        else:
            from culaunch._compile.fatbins import combine

            data = combine(parts, "linked")
        log = "\n".join(dict.fromkeys(part.log for part in parts if part.log))
        linked = Image(data, names=names, signatures=signatures, log=log)
        try:
            # nvJitLink may report success with an incomplete image.
            inspect(linked)
        except ImageError as error:
            raise CompileError(
                f"nvJitLink reported success and made an image that cannot be read: {error}",
                log=log,
            ) from error
        return linked

    store = checked_cache(cache)
    if store is None:
        return make()
    digest = hashlib.sha256()
    # The lengths come before the contents, so two different lists of inputs never give the same
    # bytes.
    facts = [_SCHEMA, "link", identity, archs, options, names, signatures]
    digest.update(json.dumps(facts, sort_keys=True).encode())
    for kind, data, _ in inputs:
        content = _bytes(data)
        digest.update(f"{kind} {len(content)}\n".encode())
        digest.update(content)
    return store.get_or_make(digest.hexdigest(), make)


def _read_inputs(images: Input | Iterable[Input]) -> list[tuple[str, bytes | Image, bool]]:
    """Return (kind, content, whether it is LTO-IR) of each input."""
    if isinstance(images, (str, bytes, os.PathLike, Image)):
        images = [images]
    if not isinstance(images, Iterable):
        raise TypeError(f"images must be an image or a list of images (got {spell(images)})")
    inputs: list[tuple[str, bytes | Image, bool]] = []
    for item in images:
        if isinstance(item, (str, os.PathLike)):
            with open(check_path(checked_path("images", item)), "rb") as file:
                head = file.read(20)
                file.seek(0)
                if head.startswith(_ARCHIVE):
                    inputs.append(("LIBRARY", file.read(), False))
                    continue
                if head.startswith(MAGIC) and int.from_bytes(head[18:20], "little") != EM_CUDA:
                    inputs.append(("OBJECT", file.read(), False))
                    continue
        image = Image.open(item)
        lto = image.format == "fatbin" and any(arch.startswith("lto_") for arch in image.arch)
        inputs.append((image.format.upper(), image, lto))
    if not inputs:
        raise ValueError("images is empty; give at least one image")
    return inputs


def _where(index: int, data: bytes | Image) -> str:
    return data.path if isinstance(data, Image) and data.path else f"input {index}"


def _bytes(data: bytes | Image) -> bytes:
    return data.data if isinstance(data, Image) else data


@functools.cache
def opened_nvjitlink() -> tuple[object, str]:
    """Find and load nvJitLink; return it and the identity of its build."""
    with needed("linking", "nvJitLink", set_pip_folders):
        return open_nvjitlink()
