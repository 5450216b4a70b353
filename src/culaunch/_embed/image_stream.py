"""An image as a stream, to keep a large one out of memory."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from culaunch._errors import ImageError
from culaunch._image import Image
from culaunch._image.files import check_path
from culaunch._image.metadata import append_metadata
from culaunch._image.sniff import image_format

if TYPE_CHECKING:
    from collections.abc import Iterator

# Enough to recognize the format. For PTX, this is past the comments at its top.
_HEAD = 1 << 16
# Small enough to stay in a processor's cache between the read and the write.
_PIECE = 1 << 18


@dataclass
class ImageStream:
    """An open image: its size is known, its bytes are copied once."""

    file: io.RawIOBase | io.BytesIO
    size: int
    label: str
    path: str | None

    def copy_to(self, output: BinaryIO) -> None:
        """Write all the bytes to `output`, in pieces."""
        piece = memoryview(bytearray(_PIECE))
        left = self.size
        while left:
            # One buffer, filled again and again: no piece is allocated, and nothing is copied in
            # between.
            count = self.file.readinto(piece[: min(_PIECE, left)])
            # Another process has truncated it since its size was read. The size in the header is
            # now wrong.
            if not count:
                raise ImageError("became shorter while it was being read", source=self.label)
            output.write(piece[:count])
            left -= count

    def is_file(self, path: str) -> bool:
        """Tell whether `path` is the file that the image is read from."""
        return self.path is not None and os.path.exists(path) and os.path.samefile(self.path, path)


def image_bytes(image: Image) -> bytes:
    """Return an image with its names and signatures, read from its file, as in C++."""
    return append_metadata(image.data, image.format, image.names, image.signatures)


@contextlib.contextmanager
def open_image_stream(image: str | os.PathLike[str] | bytes | Image) -> Iterator[ImageStream]:
    """Open an image after a look at its first bytes."""
    if isinstance(image, (bytes, bytearray, memoryview, Image)):
        data = image_bytes(Image.open(bytes(image) if not isinstance(image, Image) else image))
        yield ImageStream(io.BytesIO(data), len(data), f"<{len(data)} bytes>", None)
        return
    if not isinstance(image, (str, os.PathLike)):
        raise TypeError(f"image must be a path, bytes or an Image (got {type(image).__name__})")
    path = check_path(image)
    with open(path, "rb", buffering=0) as file:
        image_format(file.read(_HEAD), path)
        file.seek(0)
        yield ImageStream(file, os.fstat(file.fileno()).st_size, path, path)
