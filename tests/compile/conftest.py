"""Helpers of the tests of compiling: a cache of their own, and images that cost nothing."""

import os
import sys
from pathlib import Path

import pytest

import culaunch as cl

sys.path.insert(0, str(Path(__file__).parent))  # for sources

SCALE = """
template <class T>
__global__ void scale(T* y, const T* x, T a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
namespace ns {
template <int k, class T>
__global__ void fill(T* y) { y[threadIdx.x] = T(k); }
}
"""


@pytest.fixture
def scale():
    """Two kernel templates, ``scale<T>`` and ``ns::fill<k, T>``."""
    return SCALE


@pytest.fixture
def cache(tmp_path):
    """An empty cache."""
    return cl.cache.Cache(tmp_path / "cache")


@pytest.fixture
def fake():
    """Make an image without a compiler: PTX with a number in it."""

    def make(number=0, size=0):
        text = f"// {number}\n.version 8.0\n.target sm_80\n.address_size 64\n" + "/" * size
        return cl.Image(text.encode(), names={"k": f"k{number}"}, signatures={"k": ("int", None)})

    return make


@pytest.fixture
def key():
    """Make a key out of a number."""
    return lambda number: f"{number:064x}"


@pytest.fixture
def root():
    """Skip unless the tests may give files to other users."""
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture
def compiled(cache):
    """Compile with a cache of this test's own."""
    return lambda source, **keywords: cl.compile(
        source, **{"arch": "sm_80", "cache": cache, **keywords}
    )


@pytest.fixture
def no_device(monkeypatch):
    """Have no device, so an architecture must be passed."""
    monkeypatch.delenv("CULAUNCH_DRIVER", raising=False)
    monkeypatch.setattr("culaunch._compile.architectures._ask_driver", lambda _: ())
