"""A pytest plugin: CuPy's own tests of ``ReductionKernel`` run the class of this name in culaunch.

Put this folder on PYTHONPATH, and run ``pytest -p cupy_reductions FILE -k TestReductionKernel`` on
CuPy's ``tests/cupy_tests/core_tests/test_reduction.py``.
"""

from __future__ import annotations

from typing import Any

import cupy
import pytest
from cupy import _core

from culaunch import DeviceArray
from culaunch import elementwise as ew

# These test CuPy's implementation, not the convention.
_OTHERS = {
    "test_invalid_kernel_name": "the text of CuPy's error",
    "TestReductionKernelCachedCode": "CuPy's cache of sources",
}


class ReductionKernel(ew.ReductionKernel):
    """The class of culaunch, whose results are always CuPy's arrays, as CuPy's tests expect."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Reduce; arrays that no framework owns give a DeviceArray."""
        result = super().__call__(*args, **keywords)
        return cupy.from_dlpack(result) if isinstance(result, DeviceArray) else result


def pytest_configure() -> None:
    """Replace the class before a test module is imported."""
    cupy.ReductionKernel = _core.ReductionKernel = ReductionKernel


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip by name what tests CuPy's implementation."""
    for item in items:
        for name, reason in _OTHERS.items():
            if name in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=reason))
