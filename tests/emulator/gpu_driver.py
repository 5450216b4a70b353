"""Functions of a GPU's driver."""

from __future__ import annotations

import ctypes
from typing import Any


def real_function(name: str) -> Any:
    """Return a function of libcuda, with the first device's context: some need a current one."""
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    return getattr(driver, name)
