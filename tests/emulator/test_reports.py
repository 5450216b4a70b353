"""The parts of a report: the source with its text, inlined calls, arguments and allocations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from emulator_internals import Position, PtxImage

import culaunch as cl
from culaunch import testing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = r"""
__device__ __forceinline__ float deep(float* x, int i) { return x[i] * 2; }
__device__ __forceinline__ float middle(float* x, int i) {
  float a = deep(x, i);
  return a + deep(x, i + 1);
}
extern "C" __global__ void top(float* y, float* x, int n) {
  y[threadIdx.x] = middle(x, n);
}
extern "C" __global__ void race(float* y, float* x) {
  x[threadIdx.x / 2] = threadIdx.x;
}
"""


@pytest.fixture(autouse=True)
def emulator() -> Iterator[None]:
    with testing.use_driver("emulator"):
        yield


def report(kernel: cl.Kernel, *arguments: object) -> str:
    with pytest.raises(cl.DriverError) as caught:
        kernel[1, 32](*arguments)
    testing.reset_emulator()
    return str(caught.value)


def test_a_report_has_the_source_and_the_inlined_calls(tmp_path: Path) -> None:
    path = tmp_path / "inlined.cu"
    path.write_text(SOURCE)
    module = cl.load(cl.compile(path, line_info=True))
    x, y = np.zeros(16, np.float32), np.zeros(32, np.float32)
    text = report(module["top"], y, x, 15)
    assert f"  source {path}:2: __device__ __forceinline__ float deep(float* x, int i)" in text
    call = r"  inlined: deep\(float \*, int\), called at {}:5: return a \+ deep\(x, i \+ 1\);"
    assert re.search(call.format(re.escape(str(path))), text.replace("float*,", "float *,"))
    call = r"  inlined: middle\(.*\), called at {}:8: y\[threadIdx.x\] = middle\(x, n\);"
    assert re.search(call.format(re.escape(str(path))), text)
    path.unlink()
    assert f"  source {path}:2\n" in report(module["top"], y, x, 15)


def test_a_report_names_the_argument_and_the_line_that_allocated_it() -> None:
    module = cl.load(cl.compile(SOURCE))
    text = report(module["top"], np.zeros(32, np.float32), np.zeros(16, np.float32), 16)
    assert re.search(r"an allocation of 64 bytes at 0x\w+, argument 1$", text, re.MULTILINE)
    with testing.emulator_options(track_allocations=True, check_races=True):
        x = cl.zeros(16, "float32")
        text = report(module["top"], cl.zeros(32, "float32"), x, 16)
        made = rf", argument 1, made at {re.escape(__file__)}:\d+"
        assert re.search(r"0 bytes after the end of an allocation of 64 bytes.*" + made, text)
        text = report(module["race"], x, x)
        assert re.search(r"the address: \d+ bytes into an allocation of 64 .*, made at", text)


def test_only_files_of_sources_are_read(tmp_path: Path) -> None:
    for name in ("/dev/zero", str(tmp_path), str(tmp_path / "missing"), "file 3", ""):
        assert Position(1, "", str(name), 2).source_lines() == [f"  source {name}:2"]
    path = tmp_path / "bytes.cu"
    path.write_bytes(b"a\nb \xff c\n")
    assert Position(1, "", str(path), 2).source_lines() == [f"  source {path}:2: b \ufffd c"]
    assert Position(1, "", str(path), 9).source_lines() == [f"  source {path}:9"]


def test_strange_debug_information_is_skipped() -> None:
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k() {
  .loc 1 5 1, function_name $L1+4, inlined_at 1 5 1
  .loc 1 5 1, function_name $L1, inlined_at 1 5 1
  ret;
}
.section .debug_str { $L1: .b8 300,-1,65,66 .b16 7 $L2: $L3: .b8 0 }
"""
    image = PtxImage(text)
    assert image.syntax.strings == {"$L3": ""}
    (ret,) = image.syntax.functions["k"].instructions
    assert [call.name for call in ret.inlined][:2] == ["$L1", "$L1"]


def test_a_report_has_the_text_of_a_source_that_is_no_file() -> None:
    # Both are compiled as kernel.cu, and each has its own lines.
    other = SOURCE.replace("threadIdx.x / 2", "threadIdx.x / 4")
    modules = [cl.load(cl.compile(text, line_info=True)) for text in (SOURCE, other)]
    x, y = np.zeros(16, np.float32), np.zeros(32, np.float32)
    text = report(modules[0]["top"], y, x, 15)
    assert re.search(r"source .*kernel\.cu:2: __device__ __forceinline__ float deep", text)
    assert re.search(r"inlined: deep.*kernel\.cu:5: return a \+ deep\(x, i \+ 1\);", text)
    for module, divisor in zip(modules, (2, 4), strict=True):
        with testing.emulator_options(check_races=True):
            text = report(module["race"], y, x)
        line = rf"source .*kernel\.cu:11: x\[threadIdx\.x / {divisor}\] = threadIdx\.x;$"
        assert len(re.findall(line, text, re.MULTILINE)) == 2, text  # of both threads
