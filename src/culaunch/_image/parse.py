"""Parses a file or an image: every image in it, with its kernels."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from culaunch._base.elf import SHT_NOBITS
from culaunch._image import fatbin
from culaunch._image.budget import Budget
from culaunch._image.cubin import Cubin
from culaunch._image.elf import Elf
from culaunch._image.embedded import SECTION, embedded_images
from culaunch._image.files import describe
from culaunch._image.info import ImageInfo, Inspection, KernelInfo, VariableInfo
from culaunch._image.metadata import split_metadata
from culaunch._image.ptx import Ptx
from culaunch._image.reader import Reader
from culaunch._image.sniff import file_format, image_format, wrapper_size
from culaunch._image.variables import cubin_variables, ptx_variables

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable, Iterator

    from culaunch._image.budget import Signatures

    Visit = Callable[[ImageInfo, bytes], object]

_FATBIN_SECTIONS = (".nv_fatbin", "__nv_relfatbin")


def parse(
    data: bytes | mmap.mmap,
    path: str | None,
    signatures: Signatures,
    kernels: bool,
    visit: Visit | None = None,
) -> Inspection:
    """Return the contents of an image or a file; `signatures` are types from another source."""
    # The image's name in errors: its path, or its format.
    source = describe(data, path)
    form = file_format(data, source)
    return Inspection(path, form, _images(data, form, source, signatures, kernels, visit))


def arch_of(data: bytes, form: str, source: str) -> tuple[str, ...]:
    """Return the architectures that an image has code for, in file order."""
    reader = Reader(memoryview(data), source)
    if form == "cubin":
        return (Cubin(reader).arch(),)
    if form == "ptx":
        return (Ptx(data, reader).arch(),)
    return tuple(dict.fromkeys(entry.arch for entry in fatbin.entries(reader)))


def kernels_of(data: bytes, path: str | None, signatures: Signatures) -> tuple[KernelInfo, ...]:
    """Return the distinct kernels of an image, each from the first cubin that contains it."""
    images = parse(data, path, signatures, kernels=True).images
    found: dict[str, KernelInfo] = {}
    # A cubin says more than PTX does: registers, stack, barriers. `sorted` keeps the order of
    # equals.
    for part in sorted(images, key=lambda part: part.format != "cubin"):
        for kernel in part.kernels:
            found.setdefault(kernel.name, kernel)
    return tuple(found.values())


def variables_of(data: bytes, path: str | None) -> tuple[VariableInfo, ...]:
    """Return the distinct variables of an image, each from the first part that contains it."""
    images = parse(data, path, {}, kernels=True).images
    found: dict[str, VariableInfo] = {}
    for part in images:
        for variable in part.variables:
            found.setdefault(variable.name, variable)
    return tuple(found.values())


def _images(
    data: bytes | mmap.mmap,
    form: str,
    source: str,
    signatures: Signatures,
    kernels: bool,
    visit: Visit | None,
) -> tuple[ImageInfo, ...]:
    reader = Reader(memoryview(data), source)
    budget = Budget(len(data), signatures, kernels, visit)
    if form in ("cubin", "ptx"):
        info = _cubin(reader, budget) if form == "cubin" else _ptx(data, reader, budget)
        if visit is not None:
            visit(info, reader.data())
        return (info,)
    if form == "fatbin":
        # In a host program a small record stands before the container and points to it.
        start = wrapper_size(data)
        container = reader.window(start, len(reader) - start, "a fatbin")
        return tuple(_entries(container, budget))
    return tuple(_host(reader, budget))


def _cubin(reader: Reader, budget: Budget) -> ImageInfo:
    cubin = Cubin(reader)
    return ImageInfo(
        format="cubin",
        arch=cubin.arch(),
        size=len(reader),
        compressed=False,
        relocatable=cubin.relocatable,
        toolkit=cubin.toolkit(),
        kernels=cubin.kernels(budget) if budget.kernels else (),
        variables=cubin_variables(reader) if budget.kernels else (),
    )


def _ptx(text: bytes | mmap.mmap, reader: Reader, budget: Budget) -> ImageInfo:
    ptx = Ptx(text, reader)
    return ImageInfo(
        format="ptx",
        arch=ptx.arch(),
        size=len(reader),
        compressed=False,
        relocatable=False,
        toolkit=ptx.toolkit(),
        kernels=ptx.kernels(budget) if budget.kernels else (),
        variables=ptx_variables(text) if budget.kernels else (),
    )


def _entries(reader: Reader, budget: Budget) -> Iterator[ImageInfo]:
    for entry in fatbin.entries(reader):
        # The entry's header has all the requested facts, so nothing is decompressed.
        if entry.compressed and not budget.kernels:
            info = ImageInfo(entry.format, entry.arch, 0, True, None, None, ())
            arch = entry.arch
        elif entry.kind == fatbin.CUBIN:
            info = _cubin(entry.open(budget), budget)
            # The suffix f, and only that one, is not always in the cubin.
            arch = entry.arch if entry.suffix else info.arch
        elif entry.kind == fatbin.PTX:
            opened = entry.open(budget)
            info = _ptx(opened.data(), opened, budget)
            arch = info.arch
        else:
            linkable = entry.kind == fatbin.LTOIR
            info = ImageInfo(entry.format, entry.arch, 0, False, linkable, None, ())
            arch = info.arch
        info = dataclasses.replace(
            info, arch=arch, size=len(entry.stored), compressed=entry.compressed
        )
        if budget.visit is not None:
            budget.visit(info, entry.open(budget).data())
        yield info


def _host(reader: Reader, budget: Budget) -> Iterator[ImageInfo]:
    """Yield the images in a host object or library."""
    elf = Elf(reader)
    found = False
    for section in elf.sections():
        if section.type != SHT_NOBITS and elf.name(section) in _FATBIN_SECTIONS:
            found = True
            yield from _entries(elf.contents(section), budget)
        elif section.type != SHT_NOBITS and elf.name(section) == SECTION:
            for name, image in embedded_images(elf.contents(section)):
                found = True
                yield from _embedded(name, image, budget)
    if not found:
        raise reader.error(
            "is a host object or library without CUDA code: it has no section "
            + " or ".join((*_FATBIN_SECTIONS, SECTION))
        )


def _embedded(name: str, image: Reader, budget: Budget) -> tuple[ImageInfo, ...]:
    """Return the facts of an image that culaunch embedded, by its name in the code."""
    source = f"{image.source}, image {name!r}"
    data, _, signatures = split_metadata(bytes(image.view), source)
    form = image_format(data, source)
    return _images(data, form, source, signatures, budget.kernels, budget.visit)
