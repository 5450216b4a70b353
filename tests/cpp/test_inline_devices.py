"""Functions of ``load_inline`` launch where their tensors are, whatever device is current."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

LAUNCHERS = Path(__file__).parents[2] / "examples" / "launchers"
# The unchanged examples, with arrays on the second device; the driver runs nothing.
SCRIPT = """
import runpy
import sys

import numpy as np
import tvm_ffi

import culaunch as cl

to_device, empty = cl.to_device, cl.empty
cl.to_device = lambda array: to_device(array, device=1)
cl.empty = lambda shape, dtype: empty(shape, dtype, device=1)
np.array_equal = np.allclose = lambda *_: True
stream = cl.Stream(device=1)
for path in sys.argv[1:]:
    runpy.run_path(path)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cpu:1"), stream.handle):
        runpy.run_path(path)
"""


@pytest.mark.needs("tvm_ffi", "numpy", "nvrtc", "g++")
def test_examples_launch_where_their_arrays_are(
    run_after_torch, tmp_path, fake_driver, unoptimized
):
    log = tmp_path / "record"
    examples = [LAUNCHERS / f"{name}.py" for name in ("dynamic", "embedded")]
    environment = {
        **os.environ, **unoptimized, "CULAUNCH_DRIVER": str(fake_driver),
        "FAKE_DRIVER_LOG_FILE": str(log),
    }  # fmt: skip
    done = run_after_torch(["-c", SCRIPT, *examples], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^launch \w+ device=(\d) .* stream=(\w+)", log.read_text(), re.MULTILINE)
    from_cpp = [launch for launch in found if launch[1] == "own"]
    assert len(from_cpp) >= 3
    assert {device for device, _ in found} == {"1"}
