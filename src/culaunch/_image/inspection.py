"""Inspect a file or an image: every image in it, with its kernels."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from culaunch._base.checks import checked_flag
from culaunch._image import fatbin
from culaunch._image.cubin import Cubin
from culaunch._image.elf import SHT_NOBITS, Elf
from culaunch._image.embedded import SECTION, embedded_images
from culaunch._image.image import Image
from culaunch._image.info import ImageInfo, Inspection, KernelInfo
from culaunch._image.metadata import may_have_metadata, split_metadata
from culaunch._image.ptx import Ptx
from culaunch._image.reader import Reader
from culaunch._image.session import Session
from culaunch._image.sniff import file_format, image_format, wrapper_size
from culaunch._image.source import check_path, describe, open_bytes

if TYPE_CHECKING:
    import mmap
    import os
    from collections.abc import Iterator

    from culaunch._image.session import Signatures

_FATBIN_SECTIONS = (".nv_fatbin", "__nv_relfatbin")


def inspect(
    source: str | os.PathLike[str] | bytes | bytearray | memoryview | Image,
    *,
    kernels: bool = True,
) -> Inspection:
    """Tell what is in an image or a file; needs no GPU and no toolkit.

    Parameters
    ----------
    source : str, os.PathLike, bytes, bytearray, memoryview or Image
        A cubin, a fatbin or PTX, or an ELF object, program or shared library that holds fatbins,
        or images that culaunch embedded.
    kernels : bool, optional
        False to list the images only. No payload is opened then: it is faster, and needs no
        decompressor.

    Returns
    -------
    Inspection
        Every image with its kernels, in file order.

    Raises
    ------
    ImageError
        If it is no such file, or is truncated or corrupt: what is wrong, and where.
    MissingDependencyError
        If it is compressed with zstd and no decompressor is installed.
    OSError
        If the file is not there or cannot be read.
    """
    checked_flag("kernels", kernels)
    if isinstance(source, Image):
        return _inspect(source.data, source.path, source.signatures, kernels)
    path: str | None = None
    data: bytes | mmap.mmap
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    else:
        path = check_path(source)
        data = open_bytes(path)
    if may_have_metadata(data):
        image = Image.open(bytes(data))
        return _inspect(image.data, path, image.signatures, kernels)
    return _inspect(data, path, {}, kernels)


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
    session = Session(len(image.data))
    return tuple(
        _text(entry.open(session).data())
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
    params = Ptx(text, reader).params(kernel, Session(len(text)))
    return None if params is None else tuple(param.type for param in params)


def image_arch(image: Image) -> tuple[str, ...]:
    """Return the architectures of an image: what :attr:`Image.arch` shows."""
    reader = Reader(memoryview(image.data), describe(image.data, image.path))
    if image.format == "cubin":
        return (Cubin(reader).arch(),)
    if image.format == "ptx":
        return (Ptx(image.data, reader).arch(),)
    return tuple(dict.fromkeys(entry.arch for entry in fatbin.entries(reader)))


def image_kernels(image: Image) -> tuple[KernelInfo, ...]:
    """Return the kernels of an image: what :attr:`Image.kernels` shows."""
    images = inspect(image).images
    found: dict[str, KernelInfo] = {}
    for part in sorted(images, key=lambda part: part.format != "cubin"):
        for kernel in part.kernels:
            found.setdefault(kernel.name, kernel)
    return tuple(found.values())


def _inspect(
    data: bytes | mmap.mmap, path: str | None, signatures: Signatures, kernels: bool
) -> Inspection:
    source = describe(data, path)
    form = file_format(data, source)
    return Inspection(path, form, _images(data, form, source, signatures, kernels))


def _images(
    data: bytes | mmap.mmap, form: str, source: str, signatures: Signatures, kernels: bool
) -> tuple[ImageInfo, ...]:
    reader = Reader(memoryview(data), source)
    session = Session(len(data), signatures, kernels)
    if form == "cubin":
        return (_cubin(reader, session),)
    if form == "ptx":
        return (_ptx(data, reader, session),)
    if form == "fatbin":
        start = wrapper_size(data)
        container = reader.window(start, len(reader) - start, "a fatbin")
        return tuple(_entries(container, session))
    return tuple(_host(reader, session))


def _cubin(reader: Reader, session: Session) -> ImageInfo:
    cubin = Cubin(reader)
    return ImageInfo(
        format="cubin",
        arch=cubin.arch(),
        size=len(reader),
        compressed=False,
        relocatable=cubin.relocatable,
        toolkit=cubin.toolkit(),
        kernels=cubin.kernels(session) if session.kernels else (),
    )


def _ptx(text: bytes | mmap.mmap, reader: Reader, session: Session) -> ImageInfo:
    ptx = Ptx(text, reader)
    return ImageInfo(
        format="ptx",
        arch=ptx.arch(),
        size=len(reader),
        compressed=False,
        relocatable=False,
        toolkit=ptx.toolkit(),
        kernels=ptx.kernels(session) if session.kernels else (),
    )


def _entries(reader: Reader, session: Session) -> Iterator[ImageInfo]:
    for entry in fatbin.entries(reader):
        if entry.compressed and not session.kernels:
            info = ImageInfo(entry.format, entry.arch, 0, True, None, None, ())
            arch = entry.arch
        elif entry.kind == fatbin.CUBIN:
            info = _cubin(entry.open(session), session)
            # The suffix f, and only that one, is not always in the cubin.
            arch = entry.arch if entry.suffix else info.arch
        elif entry.kind == fatbin.PTX:
            opened = entry.open(session)
            info = _ptx(opened.data(), opened, session)
            arch = info.arch
        else:
            linkable = entry.kind == fatbin.LTOIR
            info = ImageInfo(entry.format, entry.arch, 0, False, linkable, None, ())
            arch = info.arch
        yield dataclasses.replace(
            info, arch=arch, size=len(entry.stored), compressed=entry.compressed
        )


def _host(reader: Reader, session: Session) -> Iterator[ImageInfo]:
    """Yield the images in a host object or library."""
    elf = Elf(reader)
    found = False
    for section in elf.sections():
        if section.type != SHT_NOBITS and elf.name(section) in _FATBIN_SECTIONS:
            found = True
            yield from _entries(elf.contents(section), session)
        elif section.type != SHT_NOBITS and elf.name(section) == SECTION:
            for name, image in embedded_images(elf.contents(section)):
                found = True
                yield from _embedded(name, image, session.kernels)
    if not found:
        raise reader.error(
            "is a host object or library without CUDA code: it has no section "
            + " or ".join((*_FATBIN_SECTIONS, SECTION))
        )


def _embedded(name: str, image: Reader, kernels: bool) -> tuple[ImageInfo, ...]:
    """Return what is in an image that culaunch embedded, by its name in the code."""
    source = f"{image.source}, image {name!r}"
    data, _, signatures = split_metadata(bytes(image.view), source)
    return _images(data, image_format(data, source), source, signatures, kernels)


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode("utf-8", "replace")
