"""Handlers around allocations and launches in a body: both happen after the body."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import culaunch as cl
import culaunch.elementwise as ew

DRIVER = (cl.DriverError, cl.LaunchError, MemoryError)


@ew.fuse
def doubled(x):
    return x * 2


def launched(kernels, threads, x):
    kernels["fill<float>"][1, threads](x, 1.0, x.size)


def named(kernels, x):
    try:
        launched(kernels, 32, x)
    except (ValueError, cl.LaunchError):
        return -1
    return 1


def of_memory(kernels, x):
    try:
        y = cl.empty_like(x)
    except MemoryError as error:
        raise ValueError("too large") from error
    return y


def outer(kernels, x):
    try:
        try:
            return doubled(x)
        finally:
            x = x[:1]
    except ZeroDivisionError:
        return None
    except cl.DriverError:
        return x


def again(kernels, x):
    try:
        try:
            launched(kernels, 32, x)
        except Exception as error:
            raise ValueError("no") from error
    except cl.DriverError:
        return 0


def suppressed(kernels, x):
    with contextlib.nullcontext(), contextlib.suppress(KeyError, cl.LaunchError):
        launched(kernels, 32, x)
    return 1


@pytest.mark.parametrize("body", [named, of_memory, outer, again, suppressed])
def test_a_handler_of_the_drivers_errors_is_refused_with_the_line(kernels, body):
    function = cl.function(lambda x: body(kernels, x))
    x = np.zeros(3, np.float32)
    wanted = r"test_driver_errors.py:\d+: .*catches \w+Error.*after the body.*around the call"
    with pytest.raises(TypeError, match=wanted):
        function(x)
    with cl.function_debugging(), pytest.raises(TypeError, match=wanted):
        function(x)


def test_handlers_elsewhere_are_not_refused(kernels):
    @cl.function
    def first(x, name: str):
        try:
            kernel = kernels[name]
        except (KeyError, *DRIVER):
            kernel = kernels["fill<float>"]
        else:
            kernel[1, 32](x, 5.0, x.size)
        with contextlib.suppress(cl.LaunchError):
            n = x.size
        kernel[1, 32](x, 3.0, n)
        try:
            return n
        except cl.DriverError:
            return cl.empty_like(x)

    x = np.zeros(3, np.float32)
    try:
        assert first(x, "none") == 3
    except cl.DriverError:  # the caller's own
        raise AssertionError from None
    with cl.function_debugging():
        try:
            assert first(x, "none") == 3
        except cl.DriverError:
            raise AssertionError from None
    assert x.tolist() == [3, 3, 3]


def broad(kernels, x, blocks, value):
    try:
        kernels["small"][blocks, 1](x, value, 1, 2)
    except Exception as error:  # noqa: BLE001 - of whatever kind
        kernels["small"][1, 1](x, 0, 0, 0)
        return type(error).__name__
    return "launched"


@pytest.mark.parametrize("order", [(0, 1, 2, 0, 2, 1), (2, 1, 0, 1, 2, 0)])
def test_a_broad_handler_has_what_numbers_tell(kernels, order, tmp_path):
    calls = [(1, 5), (0, 5), (1, 500)]
    wanted = [("launched", [5, 1, 2]), ("ValueError", [0] * 3), ("OverflowError", [0] * 3)]
    function = cl.function(lambda x, blocks, value: broad(kernels, x, blocks, value))

    def outcome(function, i):
        x = np.full(3, 9, np.int32)
        return function(x, *calls[i]), x.tolist()

    assert [outcome(function, i) for i in order] == [wanted[i] for i in order]
    function.__name__ = function.declaration.name = "saved"
    cl.ship.save([function], tmp_path / "a.culib")
    saved = cl.ship.load_library(tmp_path / "a.culib").functions["saved"]
    assert [outcome(saved, i) for i in order] == [wanted[i] for i in order]
    with cl.function_debugging():
        assert [outcome(function, i) for i in order] == [wanted[i] for i in order]


@pytest.mark.parametrize("order", [(64, 2048, 64, 2048), (2048, 64, 2048)])
def test_what_the_driver_refuses_ends_the_call_in_any_order(emulated, order):
    """It is never lost, and nothing of the call is launched."""
    kernels = cl.load(
        cl.compile(
            'extern "C" __global__ void put(int* y, int v) { extern __shared__ int s[]; *y = v; }'
        )
    )

    @cl.function
    def shared(y, size: int):
        try:
            kernels["put"][1, 1](y, 1)
            kernels["put"].configure(grid=1, block=1, shared_memory=size * 1024)(y, 2)
        except Exception:  # noqa: BLE001 - of whatever kind
            kernels["put"][1, 1](y, 3)

    for size in order:
        y = np.zeros(1, np.int32)
        if size == 64:
            shared(y, size // 2)
            assert y[0] == 2
            continue
        with pytest.raises(cl.LaunchError, match="shared memory"):
            shared(y, size)
        assert y[0] == 0


@pytest.mark.parametrize("order", [(1 << 40, 3, 1 << 40), (3, 1 << 40, 3)])
def test_an_int_past_64_bits_ends_the_call_in_any_order(emulated, order, tmp_path):
    """Python's ints have no limit: a handler that got it would compute what Python does not."""

    def large(n: int):
        try:
            return n * n
        except Exception:  # noqa: BLE001 - of whatever kind
            return -1

    function = cl.function(large)

    def outcome(function, n):
        try:
            return function(n)
        except OverflowError as error:
            text = str(error)
            return "64 bits" in text and "test_driver_errors.py:" in text

    wanted = [9 if n == 3 else True for n in order]
    assert [outcome(function, n) for n in order] == wanted
    assert [outcome(function, n) for n in order] == wanted
    cl.ship.save([function], tmp_path / "a.culib")
    saved = cl.ship.load_library(tmp_path / "a.culib").large
    assert [outcome(saved, n) for n in order] == wanted
