"""Parameters of a kernel in a cubin: offsets and sizes from records, types from the name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._image import attributes as attr
from culaunch._image.info import ParamInfo

if TYPE_CHECKING:
    from culaunch._image.reader import Reader
    from culaunch._image.session import Session

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


def cubin_params(
    records: Reader, types: tuple[str, ...] | None, session: Session
) -> tuple[ParamInfo, ...]:
    """Return the parameters that a kernel's attribute section lists.

    Parameters
    ----------
    records : Reader
        The section ``.nv.info.<kernel>``.
    types : tuple of str, or None
        What the kernel's name says; dropped when it does not agree with the records.
    session : Session
        Counts what is found.
    """
    found: dict[int, tuple[int, int, bool]] = {}
    total: int | None = None
    for record in attr.records(records):
        if record.code in (attr.KPARAM_INFO, attr.KPARAM_INFO_V2):
            ordinal, offset, size, space = record.param()
            if ordinal in found:
                raise record.payload.error(f"is corrupt: parameter {ordinal} is there twice")
            found[ordinal] = offset, size, space != 0 and size == _POINTER_SIZE
        elif record.code == attr.CBANK_PARAM_SIZE:
            total = record.value
    session.add_params(len(found), records)
    params = []
    end = 0
    for ordinal in range(len(found)):
        if ordinal not in found:
            raise records.error(f"is corrupt: parameter {ordinal} is missing")
        offset, size, is_pointer = found[ordinal]
        if offset < end or (total is not None and offset + size > total):
            raise records.error(
                f"is corrupt: parameter {ordinal} at {offset}, of {size} bytes, overlaps another "
                f"or passes the end of the parameters at {total}"
            )
        end = offset + size
        # Compilers for sm_100 and later mark the pointers; before, only the name tells.
        spelled = types[ordinal] if types and len(types) == len(found) else None
        if spelled is None or not agrees(spelled, size):
            spelled = "void*" if is_pointer else None
        params.append(ParamInfo(offset, size, spelled))
    return tuple(params)


def agrees(spelled: str, size: int) -> bool:
    """Tell whether a type can have a size: True where nothing is known of the type."""
    if spelled.endswith(("*", "*const", "&")):
        return size == _POINTER_SIZE
    return _SIZES.get(spelled, size) == size
