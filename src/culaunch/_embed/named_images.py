"""Several images in one object file, for a source that names each."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from culaunch._embed.image_stream import ImageStream, open_image_stream
from culaunch._embed.machine import find_machine
from culaunch._embed.object_writer import write_objects
from culaunch._embed.symbols import Symbols, symbol_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def embed_named_images(images: Mapping[str, bytes], machine: str | None = None) -> bytes:
    """Return an object file that defines ``culaunch_image_<name>``, hidden, for each image.

    Parameters
    ----------
    images : mapping of str to bytes
        Cubins, fatbins or PTX by their names, which are identifiers of C.
    machine : {"x86_64", "aarch64"}, optional
        This machine's without it.

    Raises
    ------
    ImageError
        If one is not an image.
    """
    target = find_machine(machine)

    def streams() -> Iterator[tuple[ImageStream, Symbols]]:
        for name, data in images.items():
            # Each image is open only while it is copied into the object.
            with open_image_stream(data) as stream:
                yield stream, symbol_names("culaunch", name)

    file = io.BytesIO()
    write_objects(file, streams(), target)
    return file.getvalue()
