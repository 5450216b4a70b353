"""If a shortcut is not known to be right, the longer path gives the same results.

Each knows what Python's stable ABI, or torch, does not promise. It is tried when it is first
needed, and is off if that fails, or if Python is newer than what it was written for.
"""

import math
import struct
import sys

import pytest

from culaunch import _core

NUMBERS = [0, 1, -1, 255, 256, 2**30 - 1, 2**30, -(2**30), 2**31, 2**62, -(2**63), 2**63 - 1]
FLOATS = [0.0, -0.0, 1.5, 5e-324, 1e300, math.inf, -math.inf]


@pytest.fixture(params=["numbers", "dicts", "torch", "places", "forms"])
def without(request):
    """Call culaunch without one of them, as where the trial of it failed."""
    _core.use_shortcut(request.param, False)
    yield request.param
    _core.use_shortcut(request.param, True)


def test_numbers_are_read_in_place_only_where_that_is_known_to_be_right():
    """Python 3.15 may lay them out in another way, and without the GIL objects are larger."""
    has_gil = not hasattr(sys, "_is_gil_enabled") or "t" not in sys.abiflags
    assert _core.reads_numbers_in_place == (sys.version_info < (3, 15) and has_gil)


@pytest.fixture
def trial():
    """Make the trial of the layout of numbers as on another version of Python."""
    yield _core.try_numbers
    _core.try_numbers(0)


def test_on_a_newer_python_numbers_are_read_through_its_interface(trial, host_driver):
    """What 3.15 and its successors do is not known: nothing is read behind an object there."""
    if sys.version_info < (3, 15):
        assert trial(0x030E00F0) == _core.reads_numbers_in_place  # 3.14, whose layout is known
    for version in (0x030F00A1, 0x031000F0, 0x04000000):
        assert not trial(version)
        arrive(host_driver)


def test_numbers_arrive_all_the_same(host_driver, without):
    arrive(host_driver)


def arrive(host_driver):
    for number in NUMBERS:
        assert host_driver.bytes_of(number, 8) == number.to_bytes(8, sys.byteorder, signed=True)
    for number in FLOATS:
        assert host_driver.bytes_of(number, 8) == struct.pack("d", number)


def test_launchers_are_found_all_the_same(host_driver, without):
    kernel = host_driver.kernel(4)
    for grid, block, *more in ((3, 32), (3, 64), (3, 32, 128), ((2, 2), 32), (3, 32), ((2, 2), 32)):
        kernel[(grid, block, *more)](1)
        last = host_driver.last
        assert last.grid == ((3, 1, 1) if grid == 3 else (2, 2, 1))
        assert (last.block, last.shared_memory) == ((block, 1, 1), *(more or [0]))


@pytest.mark.needs("torch")
def test_tensors_are_read_all_the_same(host_driver, without):
    import torch

    z = torch.ones(4, dtype=torch.complex64)
    assert int.from_bytes(host_driver.bytes_of(z, 8), sys.byteorder) == z.data_ptr()
    for lazy in (z.conj(), z.conj().imag):
        with pytest.raises(TypeError, match="resolve_"):
            host_driver.bytes_of(lazy, 8)


def test_a_shortcut_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="there is no shortcut bits"):
        _core.use_shortcut("bits", True)
