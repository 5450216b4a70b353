"""Copies from and to CUDA arrays: one table, because their parameters are parts of a 3D copy."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from culaunch._emulator.driver.graph_nodes import CopyParams
from culaunch._emulator.libcuda.c_function import takes


class _Side(NamedTuple):
    """The parameters of one side: a ``CUmemorytype``, and the members with their C types."""

    memory_type: int
    members: tuple[tuple[str, str], ...]


_HOST = _Side(1, (("host", "p"),))
_DEVICE = _Side(2, (("device", "q"),))
_BYTES = _Side(3, (("array", "p"), ("x", "z")))
_ROWS = _Side(3, (("array", "p"), ("x", "z"), ("y", "z")))
# Addresses of the runtime are of any memory.
_ANY = _Side(4, (("device", "p"),))
_PITCHED = _Side(4, (("device", "p"), ("pitch", "z")))

# The target, the source, and the parameters after them.
DRIVER_COPIES = {
    "cuMemcpyHtoAAsync": (_BYTES, _HOST, "z p"),
    "cuMemcpyAtoHAsync": (_HOST, _BYTES, "z p"),
    "cuMemcpyDtoA": (_BYTES, _DEVICE, "z"),
    "cuMemcpyAtoD": (_DEVICE, _BYTES, "z"),
    "cuMemcpyAtoA": (_BYTES, _BYTES, "z"),
}
RUNTIME_COPIES = {
    "cudaMemcpy2DToArrayAsync": (_ROWS, _PITCHED, "z z i p"),
    "cudaMemcpy2DFromArrayAsync": (_PITCHED, _ROWS, "z z i p"),
    "cudaMemcpy2DArrayToArray": (_ROWS, _ROWS, "z z i"),
    "cudaMemcpyToArrayAsync": (_ROWS, _ANY, "z i p"),
    "cudaMemcpyFromArrayAsync": (_ANY, _ROWS, "z i p"),
    "cudaMemcpyArrayToArray": (_ROWS, _ROWS, "z i"),
}


def copy_function(name: str, target: _Side, source: _Side, rest: str) -> Any:
    """Return the method of a copy, which runs as a 3D copy."""
    words = rest.split()
    has_rows = words[:2] == ["z", "z"]

    def copy(self: Any, *given: Any) -> None:
        values = iter(given)
        params = CopyParams(height=1, depth=1)
        for side, known in ((params.target, target), (params.source, source)):
            side.memory_type = known.memory_type
            for member, _ in known.members:
                setattr(side, member, next(values) or 0)
        params.width = next(values)
        if has_rows:
            params.height = next(values)
        else:
            array = params.target.array or params.source.array
            _split_rows(params, self._array(array).pitch)
        stream = given[-1] if words[-1] == "p" else 0
        self.cuMemcpy3DAsync(ctypes.addressof(params), stream)

    copy.__name__ = name
    kinds = [kind for side in (target, source) for _, kind in side.members]
    return takes(" ".join((*kinds, *words)))(copy)


def _split_rows(params: CopyParams, pitch: int) -> None:
    """Make rows of a number of bytes that fills whole rows of an array."""
    if params.width > pitch and not params.width % pitch:
        params.width, params.height = pitch, params.width // pitch
