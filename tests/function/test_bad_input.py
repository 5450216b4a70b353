"""Errors for each kind of bad input, from many threads at once, between good calls."""

import threading

import numpy as np
import pytest
from runs import in_threads

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")

x4 = np.arange(4, dtype=np.float32)
vector = cl.Array("float32", "n")
changed = 0


def cases(fill=None, other=None):
    """Return for each kind: a body that launches first, arguments, bad ones, and the error.

    The first argument is what the launches write. `other` is an array of another framework.
    """
    kept = []

    def like(seen, x: vector, y: cl.Array(cl.dtype_of("x"), "n") | None = None):
        fill[1, 32](seen, 1.0, 4)
        return x.shape[0]

    def grid(seen, n: int):
        fill[1, 32](seen, 1.0, 4)
        fill[cl.ceildiv(n, 32), 32](seen, 1.0, 4)

    def narrow(seen, n: int):
        fill[1, 32](seen, 1.0, 4)
        fill[1, 32](seen, 1.0, n * n)

    def divided(seen, n: int):
        fill[1, 32](seen, 1.0, 4)
        return 1 if 12 // n == 3 else 2

    def counted(seen, n: int):
        fill[1, 32](seen, 1.0, 4)
        for _ in range(n):
            seen.is_contiguous()

    def read(seen, n: int):
        fill[1, 32](seen, 1.0, 4)
        return float(seen[0]) if n == 0 else n

    def stateful(seen, n: int):
        global changed
        fill[1, 32](seen, 1.0, 4)
        if n == 0:
            changed += 1
        return n

    def keeping(seen, n: int):
        fill[1, 32](seen, 1.0, 4)
        if n == 1:
            kept.append(seen)
        return n if n == 1 else kept[0].shape[0]

    integers = x4.astype(np.int32)
    return {
        "dtype": (like, [(x4,)], (integers,), TypeError, "argument x must be an array of float32"),
        "rank": (like, [(x4,)], (x4.reshape(2, 2),), ValueError, "x must have 1 dimension"),
        "dimension": (
            like,
            [(x4, x4)],
            (x4, x4[:3]),
            ValueError,
            "y has 3 .* along n, but x has 4",
        ),
        "frameworks": (
            like,
            [(x4, x4)],
            (other,),
            TypeError,
            "all arrays of a call must be of one",
        ),
        "grid of none": (grid, [(1,), (70,)], (0,), ValueError, "from 1 to 2147483647"),
        "overflow": (narrow, [(1,), (2,)], (1 << 20,), OverflowError, "a parameter of 4 bytes"),
        "past 64 bits": (narrow, [(1,), (2,)], (1 << 40,), OverflowError, "64 bits"),
        "division": (divided, [(4,), (5,)], (0,), ZeroDivisionError, "zero"),
        "paths": (counted, [(n,) for n in range(64)], (64,), ValueError, "64 paths"),
        "data": (read, [(1,)], (0,), TypeError, "depends on its data"),
        "state": (stateful, [(1,)], (0,), TypeError, "changed"),
        "escape": (keeping, [(1,)], (2,), TypeError, "is used after the trace ended"),
    }


@pytest.mark.parametrize("what", cases())
def test_bad_input_from_many_threads(what, kernels):
    body, good, bad, error, message = cases(kernels["fill<float>"], cl.to_device(x4))[what]
    function = cl.function(body)
    for args in good:
        function(np.zeros(4, np.float32), *args)
    barrier = threading.Barrier(6)

    def work(number):
        barrier.wait()
        for i in range(6):
            seen = np.zeros(4, np.float32)
            if (i + number) % 2:
                function(seen, *good[i % len(good)])
                assert seen.tolist() == [1.0] * 4
                continue
            with pytest.raises(error, match=message):
                function(seen, *bad)
            assert seen.tolist() == [0.0] * 4, "it was launched half"

    assert in_threads(work, 6) == []
