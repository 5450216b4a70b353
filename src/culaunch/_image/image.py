"""One compiled module image, as bytes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from culaunch._base.values import spell
from culaunch._errors import ImageError
from culaunch._image.files import check_path, describe
from culaunch._image.metadata import append_metadata, split_metadata
from culaunch._image.sniff import image_format, wrapper_size

if TYPE_CHECKING:
    import os

    from culaunch._image.info import KernelInfo, VariableInfo


@dataclass(frozen=True, repr=False)
class Image:
    """One compiled module image: a cubin, a fatbin or PTX.

    The constructor reads only the first bytes, to determine the format. Everything else is parsed
    on demand. Two images are equal if their bytes are.

    Parameters
    ----------
    data : bytes
        The image as the driver gets it; a wrapper before a fatbin is removed.
    path : str, optional
        The file that it came from, for messages.
    names : Mapping[str, str], optional
        Name expression to lowered (mangled) name, for an image compiled with ``names=``.
    signatures : Mapping[str, tuple[str or None, ...]], optional
        Kernel name to the types of its parameters. It is for kernels whose types the compiler knows
        but the name does not spell (``extern "C"``). None stands for an unknown type.
    log : str, optional
        The compiler's log.

    Attributes
    ----------
    format : str
        ``"cubin"``, ``"fatbin"`` or ``"ptx"``.

    Raises
    ------
    ImageError
        If the bytes are not an image. The message says what they are instead, if known.

    Examples
    --------
    >>> image = cl.compile(source, arch="compute_80")
    >>> image.format, image.arch
    ('ptx', ('compute_80',))
    >>> image.save("kernels.ptx")
    >>> cl.Image.open("kernels.ptx") == image
    True
    """

    data: bytes
    path: str | None = field(default=None, kw_only=True, compare=False)
    names: Mapping[str, str] = field(default_factory=dict, kw_only=True, compare=False)
    signatures: Mapping[str, tuple[str | None, ...]] = field(
        default_factory=dict, kw_only=True, compare=False
    )
    log: str = field(default="", kw_only=True, compare=False)
    format: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            raise TypeError(
                f"data must be bytes (got {type(self.data).__name__}): for a path or another "
                "buffer, call Image.open"
            )
        if not (self.path is None or isinstance(self.path, str)) or not isinstance(self.log, str):
            raise TypeError(f"path and log must be str (got {spell(self.path)}, {spell(self.log)})")
        _check_names(self.names)
        _check_signatures(self.signatures)
        if size := wrapper_size(self.data):
            # A wrapper has a pointer, which would send the driver anywhere.
            object.__setattr__(self, "data", self.data[size:])
        # The class is frozen, to make images shareable and hashable; only the constructor sets
        # attributes.
        object.__setattr__(self, "names", MappingProxyType(dict(self.names)))
        object.__setattr__(self, "signatures", MappingProxyType(dict(self.signatures)))
        object.__setattr__(self, "format", image_format(self.data, describe(self.data, self.path)))

    @classmethod
    def open(cls, source: str | os.PathLike[str] | bytes | bytearray | memoryview | Image) -> Image:
        """Open an image from a path, from bytes, or from an image (which is returned unchanged).

        Parameters
        ----------
        source : str, os.PathLike, bytes, bytearray, memoryview or Image
            A ``str`` is always a path: PTX text is given as ``text.encode()``.

        Returns
        -------
        Image

        Raises
        ------
        ImageError
            If it is a directory, is empty, or is not an image.
        OSError
            If the file is not there or cannot be read.
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, (bytes, bytearray, memoryview)):
            path, data = None, bytes(source)
        else:
            path = check_path(source)
            with open(path, "rb") as file:
                data = file.read()
        data, names, signatures = split_metadata(data, describe(data, path))
        return cls(data, path=path, names=names, signatures=signatures)

    @functools.cached_property
    def arch(self) -> tuple[str, ...]:
        """The architectures it holds, in file order: ``("sm_90a",)``; several for a fatbin."""
        from culaunch._image.parse import arch_of

        return arch_of(self.data, self.format, describe(self.data, self.path))

    @functools.cached_property
    def variables(self) -> tuple[VariableInfo, ...]:
        """Its ``__device__`` and ``__constant__`` variables, without the compiler's own."""
        from culaunch._image.parse import variables_of

        return variables_of(self.data, self.path)

    @functools.cached_property
    def kernels(self) -> tuple[KernelInfo, ...]:
        """Its kernels. A kernel that a fatbin holds for several architectures appears once.

        The facts are then those of the first entry that has it, cubins before PTX;
        :func:`culaunch.inspect` lists every entry.
        """
        from culaunch._image.parse import kernels_of

        return kernels_of(self.data, self.path, self.signatures)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the image to a file, completely or not at all.

        The file contains the image's bytes, followed by its names and signatures, if any. The
        driver and NVIDIA's tools accept this file.

        Parameters
        ----------
        path : str or os.PathLike
            An existing file is replaced as a whole and keeps its mode. A link, a device or a FIFO
            is written through.

        Raises
        ------
        OSError
            If writing fails; an existing file is then unchanged.
        """
        from culaunch._base.checks import checked_path
        from culaunch._base.outputs import write_output

        data = append_metadata(self.data, self.format, self.names, self.signatures)
        write_output(checked_path("path", path), data)

    def __repr__(self) -> str:
        try:
            arch = ", ".join(self.arch)
        except ImageError:
            # The first bytes looked right, but the rest is broken. A repr must not raise.
            arch = "unreadable"
        where = f" from {self.path!r}" if self.path else ""
        return f"<culaunch.Image {self.format} {arch}, {len(self.data)} bytes{where}>"

    def __reduce__(self) -> tuple[object, ...]:
        # A mapping proxy cannot be pickled, and a worker process may well be sent an image.
        state = (self.data, self.path, dict(self.names), dict(self.signatures), self.log)
        return _rebuild, state


def _check_names(names: object) -> None:
    if not isinstance(names, Mapping):
        raise TypeError(f"names must map name expressions to names (got {type(names).__name__})")
    for pair in names.items():
        if not all(isinstance(text, str) for text in pair):
            raise TypeError(f"names must map str to str (got {spell(pair)})")


def _check_signatures(signatures: object) -> None:
    if not isinstance(signatures, Mapping):
        raise TypeError(f"signatures must map names to types (got {type(signatures).__name__})")
    for name, types in signatures.items():
        if not isinstance(name, str) or not isinstance(types, (tuple, list)):
            raise TypeError(f"signatures must map str to tuples (got {spell(name)})")


def _rebuild(
    data: bytes,
    path: str | None,
    names: dict[str, str],
    signatures: dict[str, tuple[str | None, ...]],
    log: str,
) -> Image:
    return Image(data, path=path, names=names, signatures=signatures, log=log)
