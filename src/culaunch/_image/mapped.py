"""An image whose bytes stay where they are: in a file that is mapped."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from culaunch._image.image import Image
from culaunch._image.sniff import image_format, wrapper_size

if TYPE_CHECKING:
    from collections.abc import Mapping

# Compilers write images for aligned memory; an unaligned image is copied to an aligned address.
_ALIGNMENT = 16
_NONE: Mapping[str, Any] = MappingProxyType({})


class MappedImage(Image):
    """An image of a file.

    It holds no bytes: the driver gets the bytes of the file, which all processes share. Each access
    of ``data`` copies them.
    """

    _view: memoryview

    @classmethod
    def of(
        cls,
        view: memoryview,
        offset: int,
        path: str,
        names: Mapping[str, str] = _NONE,
        signatures: Mapping[str, tuple[str | None, ...]] = _NONE,
    ) -> Image:
        """Return the image in some bytes of a file, or one of their copy if it cannot stay there.

        Parameters
        ----------
        view : memoryview
        offset : int
            Its offset in the file, which is mapped up to a whole page.
        path : str
            Its name in messages.
        names, signatures : Mapping
            As in :class:`Image`.

        Raises
        ------
        ImageError
            If the bytes are not an image.
        """
        found = image_format(view, path)
        # The driver takes PTX with a zero after it, which bytes of Python have; and a wrapper has a
        # pointer, which is taken off.
        if found == "ptx" or offset % _ALIGNMENT or wrapper_size(bytes(view[:64])):
            return Image(bytes(view), path=path, names=names, signatures=signatures)
        # Skip the base class's checks, which need bytes: the format is known, and nothing else
        # needs a check.
        self = object.__new__(cls)
        facts = {"path": path, "names": names, "signatures": signatures, "log": "", "format": found}
        for name, value in {"_view": view, **facts}.items():
            object.__setattr__(self, name, value)
        return self

    @property
    def data(self) -> bytes:
        """The bytes, copied."""
        return bytes(self._view)

    def __eq__(self, other: object) -> bool:
        return self.data == other.data if isinstance(other, Image) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.data,))


def buffer_of(image: Image) -> bytes | memoryview:
    """Return the bytes of an image in place."""
    return image._view if isinstance(image, MappedImage) else image.data  # noqa: SLF001
