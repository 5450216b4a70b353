"""Combine images for several architectures into one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from culaunch._base.nvidia_libraries import needed
from culaunch._base.values import spell
from culaunch._compile.backend import Compiled
from culaunch._core import combine_images, set_pip_folders
from culaunch._image import Image

if TYPE_CHECKING:
    from collections.abc import Sequence


def fatbin(images: Iterable[Image | str | os.PathLike[str] | bytes]) -> Image:
    """Put cubins and PTX of several architectures into one fatbin that the driver picks from.

    Parameters
    ----------
    images : iterable of Image, path or bytes
        From any compiler; at most one cubin and one PTX for each architecture.

    Returns
    -------
    Image
        With the names and signatures of all of them.

    Raises
    ------
    ImageError
        If one is not an image.
    OSError
        If a file cannot be read.
    ValueError, TypeError
        If there are none, two for one architecture, or a fatbin among them.
    MissingDependencyError
        If nvFatbin is not installed; the message has the pip command.

    Examples
    --------
    >>> images = [cl.compile(source, arch=arch) for arch in ("compute_80", "compute_90")]
    >>> image = cl.compiling.fatbin(images)
    >>> image.arch
    ('compute_80', 'compute_90')
    """
    if isinstance(images, (str, bytes, os.PathLike, Image)) or not isinstance(images, Iterable):
        raise TypeError(f"images must be a list of images (got {spell(images)})")
    opened = [Image.open(image) for image in images]
    if not opened:
        raise ValueError("images is empty; give at least one image")
    parts: dict[tuple[str, str], Compiled] = {}
    for image in opened:
        if image.format == "fatbin":
            raise ValueError(f"images has {image!r}: a fatbin cannot contain another")
        arch = image.arch[0]
        if (image.format, arch) in parts:
            raise ValueError(
                f"images has two images for {arch}, and the driver would use only "
                "one: leave one out"
            )
        parts[image.format, arch] = Compiled(arch, image.format, image.data)
    names = {name: lowered for image in opened for name, lowered in image.names.items()}
    signatures = {kernel: types for image in opened for kernel, types in image.signatures.items()}
    return Image(combine(list(parts.values()), "kernels"), names=names, signatures=signatures)


def combine(parts: Sequence[Compiled], identifier: str) -> bytes:
    """Return the bytes of a fatbin with all parts."""
    linkable = any(part.kind == "ltoir" for part in parts)
    with needed(
        "LTO-IR, which is kept in a fatbin," if linkable else "a fatbin",
        "nvFatbin",
        set_pip_folders,
    ):
        return combine_images([(part.kind, part.arch, part.data) for part in parts], identifier)
