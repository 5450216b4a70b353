"""The verb ``embed``: an image becomes an object file that C++ code links."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._base.checks import checked_path
from culaunch._base.outputs import open_output
from culaunch._base.values import spell
from culaunch._embed.image_stream import open_image_stream
from culaunch._embed.machine import find_machine
from culaunch._embed.merging import merge_image
from culaunch._embed.object_writer import write_object
from culaunch._embed.symbols import symbol_names

if TYPE_CHECKING:
    import os

    from culaunch._image import Image

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def embed(
    image: str | os.PathLike[str] | bytes | Image,
    output_object: str | os.PathLike[str],
    name: str,
    *,
    merge_with: str | os.PathLike[str] | None = None,
    symbol_style: str = "culaunch",
    machine: str | None = None,
) -> None:
    """Write an object file that carries an image, for ``CULAUNCH_EMBED_CUBIN(name)``.

    This needs no compiler, linker or binutils. The image is read-only data, aligned to 64 bytes and
    followed by a zero byte, which makes PTX a C string. It is copied in pieces: a large image needs
    no memory.

    A separate object defines hidden symbols. You can link them into any library once, and no other
    library sees them. If the image is merged with an object, its symbols are local to that object.

    Parameters
    ----------
    image : str, os.PathLike, bytes or Image
        A cubin, a fatbin or PTX.
    output_object : str or os.PathLike
        The object file (ELF, relocatable) to write. It is replaced as a whole or not at all. A
        link, a device or a FIFO is written through.
    name : str
        The name in the C++ code's ``CULAUNCH_EMBED_CUBIN``: a C identifier.
    merge_with : str or os.PathLike, optional
        An object compiled from the code that embeds `name`. The output is that object with the
        image, whose symbols only it sees. Any number of objects in one library can therefore use
        the same name. It may be the output of an earlier call (one object, two images), or
        `output_object` itself.
    symbol_style : {"culaunch", "tvm-ffi"}, default "culaunch"
        ``"tvm-ffi"`` writes the symbols that ``TVM_FFI_EMBED_CUBIN(name)`` expects.
    machine : {"x86_64", "aarch64"}, optional
        The processor of the object. The default is the processor of `merge_with`, else this
        machine's.

    Raises
    ------
    ImageError
        If `image` is not a cubin, a fatbin or PTX. Also if `merge_with` is not an object file of a
        supported machine that refers to `name`. Nothing is written then.
    OSError
        If a file is missing or cannot be read or written. No partial file is left.
    ValueError
        If `name`, `symbol_style` or `machine` is not one of those allowed.
    TypeError
        If an argument has another type.

    Examples
    --------
    >>> cl.cpp.embed(cl.compile(source, arch="sm_90"), "kernels.o", "kernels")
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a str (got {type(name).__name__})")
    if not _IDENTIFIER.match(name):
        raise ValueError(
            f"name must be a C identifier, as in CULAUNCH_EMBED_CUBIN(my_kernels): letters, "
            f"digits and underscores, not starting with a digit (got {spell(name)})"
        )
    for argument, value in (("symbol_style", symbol_style), ("machine", machine)):
        if not isinstance(value, str) and not (argument == "machine" and value is None):
            raise TypeError(f"{argument} must be a str (got {spell(value)})")
    symbols = symbol_names(symbol_style, name)
    output = checked_path("output_object", output_object)
    merge_path = None if merge_with is None else checked_path("merge_with", merge_with)
    # An object contains its machine. If the argument is given, too, merging checks that they agree.
    target = None if machine is None and merge_with is not None else find_machine(machine)
    with open_image_stream(image) as stream:
        if stream.is_file(output):
            raise ValueError(
                f"output_object must not be the image itself ({output!r}): name another file"
            )
        # Only now: every invalid argument has been refused, and the output is replaced only at the
        # end of the block.
        with open_output(output) as file:
            if merge_path is None:
                assert target is not None
                write_object(file, stream, symbols, target)
            else:
                merge_image(file, merge_path, stream, symbols, target)
