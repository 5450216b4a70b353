"""The limits of one inspection, and the names that it has already demangled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._image.info import ParameterInfo
from culaunch._image.names import demangle, mangled_param_types

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from culaunch._image.info import ImageInfo
    from culaunch._image.reader import Reader

    Signatures = Mapping[str, tuple[str | None, ...]]

# A file states how much there is to report, and a hostile file states a lot in few bytes. Its names
# share letters, its records share bytes, and its payloads expand. The limits below keep an
# inspection within four times the file, or within a fixed size for small files. They allow 1 x the
# file, 2 x one payload at a time, 1/2 x names, and 1/2 x the rest of the report.
_FLOOR = 4 << 20
_PAYLOAD_FLOOR = 64 << 20
# No compressed image in use comes near: PTX shrinks to a tenth.
_BEST_RATIO = 256
# The memory that the report of one kernel and of one parameter takes.
_KERNEL_COST = 512
_PARAM_COST = 192
_REFERENCE_COST = 8


class Budget:
    """The resource limits of the inspection of one file.

    Parameters
    ----------
    size : int
        The size of the file in bytes.
    signatures : Mapping[str, tuple[str or None, ...]], optional
        Parameter types of kernels whose names do not tell them.
    kernels : bool, optional
        Whether to report kernels.
    visit : callable, optional
        Called with each image's record and bytes.
    """

    def __init__(
        self,
        size: int,
        signatures: Signatures | None = None,
        kernels: bool = True,
        visit: Callable[[ImageInfo, bytes], object] | None = None,
    ) -> None:
        self.kernels = kernels
        self.visit = visit
        self._size = size
        # Allowances that are used up as the report grows; below zero the file is refused.
        self._report = _FLOOR + size // 2
        self._names = _FLOOR + size // 2
        self._demangled = _FLOOR + size // 4
        self._signatures = signatures or {}
        self._params: dict[tuple[int, int, str | None], ParameterInfo] = {}
        self._spelled: dict[str, tuple[str, tuple[str, ...] | None]] = {}

    def may_open(self, stored: int, size: int) -> bool:
        """Tell whether a compressed payload of these sizes may be opened."""
        return size <= max(2 * self._size, min(_BEST_RATIO * stored, _PAYLOAD_FLOOR))

    def add_kernel(self, name: str, where: Reader) -> None:
        """Count a kernel and its name."""
        self._report -= _KERNEL_COST
        # Entries for several architectures have the same kernels: a name is held once.
        if name not in self._spelled:
            self._names -= len(name)
        if self._report < 0 or self._names < 0:
            raise where.error("is corrupt: it claims more kernels than its size can hold")

    def param(self, offset: int, size: int, spelled: str | None, where: Reader) -> ParameterInfo:
        """Make a parameter, or return an equal one: kernels have much the same parameters."""
        key = offset, size, spelled
        known = self._params.get(key)
        self._report -= _REFERENCE_COST
        if known is None:
            self._report -= _PARAM_COST
            known = self._params[key] = ParameterInfo(offset, size, spelled)
        if self._report < 0:
            raise where.error("is corrupt: it claims more parameters than its size can hold")
        return known

    def spell(self, name: str) -> tuple[str, tuple[str | None, ...] | None]:
        """Return a kernel's demangled name and parameter types, parsed once for all entries.

        Demangling can lengthen a name manyfold; past the allowance names stay mangled.
        """
        known = self._spelled.get(name)
        if known is None:
            known = name, None
            # Not an error: a long name is legal, and is left unchanged.
            if self._demangled > 0:
                known = demangle(name), mangled_param_types(name)
            self._demangled -= len(known[0]) + sum(map(len, known[1] or ()))
            self._spelled[name] = known
        demangled, types = known
        return demangled, self._signatures.get(name) if types is None else types
