"""Launches of ``culaunch::ffi::Data(x)``: the check with messages runs for the first call only."""

from __future__ import annotations

import pytest

import culaunch as cl

np = pytest.importorskip("numpy")
pytest.importorskip("tvm_ffi")
pytestmark = [pytest.mark.needs("g++", "nvrtc"), pytest.mark.slow]

# Included before all other headers. A class that counts stands in for the one that checks.
COUNTING = """
#pragma once
#define ArgumentCheck UncountedCheck
#include <culaunch/argument_check.h>
#undef ArgumentCheck

CULAUNCH_NAMESPACE_BEGIN
namespace detail {
inline int checks = 0;
class ArgumentCheck : public UncountedCheck {
 public:
  using UncountedCheck::UncountedCheck;
  Status Run(const ArgumentType* given, const ArrayArgument* const* arrays, size_t count) {
    ++checks;
    return UncountedCheck::Run(given, arrays, count);
  }
};
}  // namespace detail
CULAUNCH_NAMESPACE_END
"""
CODE = """
using culaunch::ffi::Data;
CULAUNCH_EMBED_CUBIN(kernels);

void scale(tvm::ffi::TensorView y, tvm::ffi::TensorView x, double a) {
  CULAUNCH_GET_KERNEL(kernels, "_Z5scalePfPKffi")
  ({1, 64}, Data(y), Data(x), static_cast<float>(a), static_cast<int>(x.numel()));
}
void scale_by_pointer(tvm::ffi::TensorView y, tvm::ffi::TensorView x, double a) {
  CULAUNCH_GET_KERNEL(kernels, "_Z5scalePfPKffi")
  ({1, 64}, Data(y), static_cast<const float*>(Data(x)), static_cast<float>(a),
   static_cast<int>(x.numel()));
}
int64_t checks() { return culaunch::detail::checks; }
"""
KERNELS = """
__global__ void scale(float* y, const float* x, float a, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = a * x[threadIdx.x];
}
"""


@pytest.fixture
def counted(emulated, tmp_path):
    header = tmp_path / "counting.h"
    header.write_text(COUNTING)
    return cl.cpp.load_inline(
        "checked_once", CODE,
        embed_cubin={"kernels": cl.compile(KERNELS, arch="compute_80")},
        functions=["scale", "scale_by_pointer", "checks"],
        flags=["-O0", "-include", str(header)],
    )  # fmt: skip


def test_only_the_first_call_with_valid_arrays_runs_the_check(counted):
    for size in (8, 8, 64, 3, 1):  # other arrays, of other sizes
        x = np.arange(size, dtype=np.float32)
        y = np.zeros_like(x)
        counted.scale(y, x, 2.5)
        assert (y == 2.5 * x).all()
        assert counted.checks() == 1
    # Another list of C++ types has a check of its own.
    for _ in range(3):
        counted.scale_by_pointer(y, x, 3.0)
        counted.scale(y, x, 2.5)
        assert counted.checks() == 2
    # A wrong array is found by its facts, and checked once more for the message.
    for _ in range(2):
        before = counted.checks()
        with pytest.raises(
            TypeError, match=r"must be an array of float32 \(got an array of float64\)"
        ):
            counted.scale(y, x.astype(np.float64), 2.5)
        assert counted.checks() > before
    before = counted.checks()
    counted.scale(y, x, 2.5)
    assert counted.checks() == before
