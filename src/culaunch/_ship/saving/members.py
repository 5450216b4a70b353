"""The members of a library under construction."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from culaunch._launch import Module

if TYPE_CHECKING:
    from culaunch._image import Image


class Members:
    """The members of a library under construction, without duplicates.

    Attributes
    ----------
    contents : dict[str, bytes]
    further : dict
        Module -> its images for other architectures.
    archs : dict[str, tuple[str, ...]]
        The architectures of each member that is an image.
    used : set[int]
        The modules of the kernels, by identity.
    """

    def __init__(self, further: dict[Module, list[Image]]) -> None:
        self.contents: dict[str, bytes] = {}
        self.archs: dict[str, tuple[str, ...]] = {}
        self.further = further
        self.used: set[int] = set()
        self._images: dict[int, tuple[Any, str]] = {}

    def program(self, words: bytes) -> str:
        """Add the words of a program, and return the member's name."""
        return self._add("programs", words, "bin")

    def image(self, module: Any) -> str:
        """Add the image of a module, or of an object with a module. Return the member's name."""
        # Look up by identity, and keep the module: a reused address would give another module's
        # image.
        known = self._images.get(id(module))
        if known is None:
            self.used.add(id(module))
            name = self.add_image(self._whole(module))
            known = self._images[id(module)] = (module, name)
        return known[1]

    def add_image(self, image: Image) -> str:
        """Add an image, and return the member's name."""
        name = self._add("images", image.data, image.format)
        self.archs[name] = tuple(sorted(image.arch))
        return name

    def _whole(self, module: Any) -> Image:
        further = self.further.get(module) if isinstance(module, Module) else None
        if not further:
            image: Image = module.image
            return image
        from culaunch._compile.fatbins import fatbin

        return fatbin([module.image, *further])

    def _add(self, folder: str, data: bytes, suffix: str) -> str:
        # Name it by its contents, so functions share members, and equal functions give equal files.
        name = f"{folder}/{hashlib.sha256(data).hexdigest()[:32]}.{suffix}"
        self.contents[name] = data
        return name
