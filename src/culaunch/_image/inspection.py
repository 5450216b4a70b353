"""Inspect a file or an image: every image in it, with its kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.checks import checked_flag
from culaunch._base.values import spell
from culaunch._image import fatbin
from culaunch._image.budget import Budget
from culaunch._image.files import check_path, describe, open_bytes
from culaunch._image.image import Image
from culaunch._image.metadata import may_have_metadata
from culaunch._image.parse import parse
from culaunch._image.ptx import Ptx
from culaunch._image.reader import Reader

if TYPE_CHECKING:
    import mmap
    import os
    from collections.abc import Callable

    from culaunch._image.info import ImageInfo, Inspection


def inspect(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | Image,
    *,
    kernels: bool = True,
    visit: Callable[[ImageInfo, bytes], object] | None = None,
) -> Inspection:
    """Return the contents of an image or a file, without a GPU or a toolkit.

    Parameters
    ----------
    source : str, os.PathLike, bytes, bytearray, memoryview or Image
        A cubin, a fatbin or PTX, or an ELF object, program or shared library that holds fatbins,
        or images that culaunch embedded.
    kernels : bool, optional
        False to list the images only. No payload is opened then: it is faster, and needs no
        decompressor.
    visit : callable, optional
        Called with each image's record and its bytes, decompressed, in file order: to write or
        load the images of a library one by one.

    Returns
    -------
    Inspection
        Every image with its kernels, in file order.

    Raises
    ------
    ImageError
        If it is another kind of file, truncated or corrupt. The message has the problem and the
        offset.
    MissingDependencyError
        If it is compressed with zstd and no decompressor is installed.
    OSError
        If the file is not there or cannot be read.
    TypeError
        If an argument has another type.

    Examples
    --------
    >>> for kernel in cl.inspect(cl.compile(source, arch="sm_90")).images[0].kernels:
    ...     print(kernel.demangled, [parameter.type for parameter in kernel.parameters])
    add ['float*', 'const float*', 'const float*', 'int']
    """
    checked_flag("kernels", kernels)
    if visit is not None and not callable(visit):
        raise TypeError(f"visit must be callable (got {spell(visit)})")
    if isinstance(source, Image):
        return parse(source.data, source.path, source.signatures, kernels, visit)
    path: str | None = None
    data: bytes | mmap.mmap
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    else:
        path = check_path(source)
        # Mapped if it is large: of a library of gigabytes only the tables and the images are
        # read.
        data = open_bytes(path)
    if may_have_metadata(data):
        # Signatures are at the end of the file; `Image` reads them, and checks that they are whole.
        image = Image.open(bytes(data))
        return parse(image.data, path, image.signatures, kernels, visit)
    return parse(data, path, {}, kernels, visit)


def embedded_ptx(image: Image | bytes) -> tuple[str, ...]:
    """Return the PTX texts of a PTX image or a fatbin, decompressed; none for a cubin.

    Parameters
    ----------
    image : Image or bytes

    Returns
    -------
    tuple of str
        In file order.
    """
    image = Image.open(image)
    if image.format == "cubin":
        return ()
    if image.format == "ptx":
        return (_text(image.data),)
    source = describe(image.data, image.path)
    budget = Budget(len(image.data))
    return tuple(
        _text(entry.open(budget).data())
        for entry in fatbin.entries(Reader(memoryview(image.data), source))
        if entry.kind == fatbin.PTX
    )


def ptx_param_types(ptx: str | bytes, kernel: str) -> tuple[str | None, ...] | None:
    """Return what PTX says of a kernel's parameter types.

    Parameters
    ----------
    ptx : str or bytes
        A PTX text.
    kernel : str
        The kernel's name in it.

    Returns
    -------
    tuple of (str or None), or None
        One for each parameter, None where PTX does not tell; None if there is no such kernel.
    """
    text = ptx.encode(errors="replace") if isinstance(ptx, str) else bytes(ptx)
    reader = Reader(memoryview(text), describe(text, None))
    params = Ptx(text, reader).params(kernel, Budget(len(text)))
    return None if params is None else tuple(param.type for param in params)


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode("utf-8", "replace")
