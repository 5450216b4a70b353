"""Kernels of explicit graphs, for the emulator and for the fake driver."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest

import culaunch as cl
from culaunch import _core

sys.path.insert(0, str(Path(__file__).parent))

BODY = """
{{
  .reg .b64 %p, %q; .reg .b32 %i, %v;
  ld.param.u64 %p, [{name}_0];
  ld.param.u32 %v, [{name}_1];
  mov.u32 %i, %tid.x;
  mul.wide.u32 %q, %i, 4;
  add.s64 %p, %p, %q;
  ld.global.u32 %i, [%p];
  {operation} %i, %i, %v;
  st.global.u32 [%p], %i;
  ret;
}}
"""


def ptx(target):
    """Return an image of `add` and `multiply`, which change an array of int by a number."""
    text = f".version 8.4\n.target {target}\n.address_size 64\n"
    for name, operation in (("add", "add.s32"), ("multiply", "mul.lo.s32")):
        text += f".visible .entry {name}(.param .u64 {name}_0, .param .u32 {name}_1)"
        text += BODY.format(name=name, operation=operation)
    return text.encode()


class Kernels:
    """The two kernels, with names for their parameters."""

    def __init__(self, target):
        self.module = cl.load(ptx(target))
        signature = "int* y, int value"
        self.add = self.module.kernel("add", signature=signature)
        self.multiply = self.module.kernel("multiply", signature=signature)


@pytest.fixture
def kernels(emulated):
    return Kernels("sm_80")


@pytest.fixture
def array():
    """Return an array of zeros that is so large that it is near nothing else."""
    return np.zeros(1 << 16, np.int32)


@pytest.fixture
def fake(fake_driver, monkeypatch):
    """Open the fake driver; give its library."""
    monkeypatch.setenv("CULAUNCH_DRIVER", str(fake_driver))
    library = ctypes.CDLL(str(fake_driver))
    library.fake_driver_log.restype = ctypes.c_char_p
    library.fake_driver_calls.restype = ctypes.c_uint64
    driver = _core.current_driver()
    driver.push_device(0)
    library.fake_driver_clear()
    yield library
    driver.pop_device()
