"""The results of an inspection: frozen records, in the words of the JSON output."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from culaunch._base.checks import checked_text
from culaunch._base.values import as_html
from culaunch._image.report import (
    image_lines,
    inspection_lines,
    kernel_lines,
    summary_lines,
)


class _Record:
    """A record that is written as JSON, in the layout that users parse."""

    __slots__ = ()
    _left_out: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and lists, as ``culaunch inspect --json`` prints them.

        Returns
        -------
        dict
            The fields by their names; records in them are dictionaries, too.
        """
        names = (field.name for field in fields(self))  # type: ignore[arg-type]
        return {name: _plain(getattr(self, name)) for name in names if name not in self._left_out}


@dataclass(frozen=True, slots=True)
class Inspection(_Record):
    """The contents of one file or one image.

    Attributes
    ----------
    path : str or None
        The file; None for bytes.
    format : str
        ``"cubin"``, ``"fatbin"``, ``"ptx"``, or ``"elf"`` for a host object or library.
    images : tuple of ImageInfo
        The images in file order.

    Examples
    --------
    >>> inspection = cl.inspect(cl.compile(source, arch=["compute_80", "compute_90"]))
    >>> inspection.format, [image.arch for image in inspection.images]
    ('fatbin', ['compute_80', 'compute_90'])
    """

    path: str | None
    format: str
    images: tuple[ImageInfo, ...]

    def filter(self, pattern: str) -> Inspection:
        """Return the images that have a kernel or variable with this name, and keep only these.

        Parameters
        ----------
        pattern : str
            A part of a name, mangled or not; ``*`` and ``?`` are wildcards.

        Returns
        -------
        Inspection
            A new inspection. This one is unchanged.

        Raises
        ------
        TypeError
            If it is not a str.
        """
        # fnmatch also has character sets. Here a bracket is a plain character, as in C++ arrays.
        wanted = f"*{checked_text('pattern', pattern).replace('[', '[[]')}*"
        images = []
        for image in self.images:
            kernels = tuple(one for one in image.kernels if _matches(one, wanted))
            variables = tuple(one for one in image.variables if _matches(one, wanted))
            if kernels or variables:
                images.append(replace(image, kernels=kernels, variables=variables))
        return replace(self, images=tuple(images))

    def summary(self) -> str:
        """Return the images in one table, with a row for each architecture and format.

        Returns
        -------
        str
            Several lines.
        """
        return "\n".join(summary_lines(self))

    def table(self, width: int | None = None) -> str:
        """Return the tables that ``culaunch inspect`` prints.

        Parameters
        ----------
        width : int, optional
            Columns of the terminal. Longer names lose their middle; by default they are whole.

        Returns
        -------
        str
            Several lines.
        """
        return "\n".join(inspection_lines(self, width))

    def __str__(self) -> str:
        """Return the tables, with whole names."""
        return self.table()

    def _repr_html_(self) -> str:
        return as_html(self)


@dataclass(frozen=True, slots=True)
class ImageInfo(_Record):
    """One image: a cubin, PTX or LTO-IR, on its own or as an entry of a fatbin.

    Attributes
    ----------
    format : str
        ``"cubin"``, ``"ptx"`` or ``"ltoir"``.
    arch : str
        ``"sm_90a"`` for a cubin, ``"compute_80"`` for PTX, ``"lto_80"`` for LTO-IR.
    size : int
        Size in the file in bytes.
    compressed : bool
        Whether the fatbin stores it compressed.
    relocatable : bool or None
        Whether it must be linked before it can be loaded.
    toolkit : str or None
        The toolkit that made it, such as ``"13.0"``.
    kernels : tuple of KernelInfo
        In file order; always empty for LTO-IR.
    variables : tuple of VariableInfo
        The ``__device__`` and ``__constant__`` variables, without the compiler's own; always empty
        for LTO-IR.

    Examples
    --------
    >>> info = cl.inspect(cl.compile(source, arch="sm_90")).images[0]
    >>> info.format, info.arch, [kernel.name for kernel in info.kernels]
    ('cubin', 'sm_90', ['add'])
    """

    format: str
    arch: str
    size: int
    compressed: bool
    relocatable: bool | None
    toolkit: str | None
    kernels: tuple[KernelInfo, ...]
    variables: tuple[VariableInfo, ...] = ()

    _left_out = ("relocatable", "toolkit")

    def __str__(self) -> str:
        """Return the tables that ``culaunch inspect`` prints of it."""
        return "\n".join(image_lines(self))

    def _repr_html_(self) -> str:
        return as_html(self)


@dataclass(frozen=True, slots=True)
class KernelInfo(_Record):
    """One kernel; a field is None if the image does not have it.

    Attributes
    ----------
    name : str
        The name in the image.
    demangled : str
        Its C++ spelling.
    parameters : tuple of ParameterInfo
        In order.
    registers : int or None
        Per thread.
    static_shared, stack : int or None
        Bytes of static shared memory per block, and of stack frame per thread.
    barriers : int or None
        Named barriers in use.
    max_threads, required_threads, cluster : tuple of int, or None
        ``__launch_bounds__`` (or ``.maxntid``), ``.reqntid``, and the cluster compiled in.
    max_cluster_rank : int or None
        The largest cluster, in blocks, that the kernel was compiled for.
    toolkit : str or None
        The toolkit that made it.

    Examples
    --------
    >>> info = cl.inspect(cl.compile(source, arch="sm_90")).images[0].kernels[0]
    >>> info.demangled, [parameter.type for parameter in info.parameters]
    ('add', ['float*', 'const float*', 'const float*', 'int'])
    """

    name: str
    demangled: str
    parameters: tuple[ParameterInfo, ...]
    registers: int | None = None
    static_shared: int | None = None
    stack: int | None = None
    barriers: int | None = None
    max_threads: tuple[int, int, int] | None = None
    required_threads: tuple[int, int, int] | None = None
    cluster: tuple[int, int, int] | None = None
    max_cluster_rank: int | None = None
    toolkit: str | None = None

    _left_out = ("max_cluster_rank",)

    def __str__(self) -> str:
        """Return the row that ``culaunch inspect`` prints of it, with its titles."""
        return "\n".join(kernel_lines((self,)))

    def _repr_html_(self) -> str:
        return as_html(self)


@dataclass(frozen=True, slots=True)
class VariableInfo(_Record):
    """A ``__device__`` or ``__constant__`` variable.

    Attributes
    ----------
    name : str
        The name in the image.
    demangled : str
        Its C++ spelling.
    size : int or None
        In bytes; None if the image does not say.
    constant : bool
        Whether it is in constant memory.

    Examples
    --------
    >>> image = cl.compile("__constant__ float table[4];", arch="sm_90")
    >>> variable = cl.inspect(image).images[0].variables[0]
    >>> variable.name, variable.size, variable.constant
    ('table', 16, True)
    """

    name: str
    demangled: str
    size: int | None
    constant: bool


@dataclass(frozen=True, slots=True)
class ParameterInfo(_Record):
    """One parameter of a kernel.

    Attributes
    ----------
    offset, size : int
        Bytes, in the parameter block.
    type : str or None
        C spelling such as ``"float*"`` or ``"const __half*"``; None if unknown.

    Examples
    --------
    >>> kernel = cl.inspect(cl.compile(source, arch="sm_90")).images[0].kernels[0]
    >>> kernel.parameters[3].offset, kernel.parameters[3].size, kernel.parameters[3].type
    (24, 4, 'int')
    """

    offset: int
    size: int
    type: str | None


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.to_dict() if isinstance(value, _Record) else value


def _matches(one: KernelInfo | VariableInfo, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in (one.name, one.demangled))
