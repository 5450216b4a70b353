"""Parameters of a kernel in a cubin: offsets and sizes from records, types from the name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._image.attributes import Record
    from culaunch._image.budget import Budget
    from culaunch._image.info import ParameterInfo
    from culaunch._image.reader import Reader

_POINTER_SIZE = 8


_SIZES = {
    "bool": 1,
    "char": 1,
    "signed char": 1,
    "unsigned char": 1,
    "short": 2,
    "unsigned short": 2,
    "__half": 2,
    "__nv_bfloat16": 2,
    "int": 4,
    "unsigned int": 4,
    "float": 4,
    "long": 8,
    "unsigned long": 8,
    "long long": 8,
    "unsigned long long": 8,
    "double": 8,
}


class ParamRecords:
    """Collect the parameters that a kernel's attribute section lists, last one first."""

    def __init__(self) -> None:
        self.total: int | None = None
        self._found: dict[int, tuple[int, int, bool]] = {}

    def add(self, record: Record, section: Reader) -> None:
        """Take one parameter."""
        ordinal, offset, size, space = record.param()
        if ordinal in self._found:
            raise section.error(f"is corrupt: parameter {ordinal} appears twice")
        # Compilers for sm_100 and later mark the pointers; before, only the name tells.
        self._found[ordinal] = offset, size, space != 0 and size == _POINTER_SIZE

    def finish(
        self, types: tuple[str | None, ...] | None, budget: Budget, section: Reader
    ) -> tuple[ParameterInfo, ...]:
        """Return the parameters in order.

        Parameters
        ----------
        types : tuple of (str or None), or None
            Types from another source; ignored if they contradict the records.
        budget : Budget
            Makes and counts the parameters.
        section : Reader
            The section with the records.
        """
        found = self._found
        # A name may have fewer or more parameters than the kernel (a C function, a variadic
        # template). Its types are then ignored.
        if types is None or len(types) != len(found):
            types = (None,) * len(found)
        params = []
        end = 0
        for ordinal, spelled in enumerate(types):
            if ordinal not in found:
                raise section.error(f"is corrupt: parameter {ordinal} is missing")
            offset, size, is_pointer = found[ordinal]
            # Records may come in any order, but parameters must not overlap.
            if offset < end or (self.total is not None and offset + size > self.total):
                raise section.error(
                    f"is corrupt: parameter {ordinal} at {offset} with {size} bytes overlaps "
                    f"another or extends past the end of the parameters at {self.total}"
                )
            end = offset + size
            known = spelled if spelled and agrees(spelled, size) else None
            if known is None and is_pointer:
                known = "void*"
            params.append(budget.param(offset, size, known, section))
        return tuple(params)


def agrees(spelled: str, size: int) -> bool:
    """Tell whether a type can have a size: True if nothing is known of the type."""
    if spelled.endswith(("*", "*const", "&")):
        return size == _POINTER_SIZE
    return _SIZES.get(spelled, size) == size
