"""Calls like the one before, which are read and launched in a shorter way: nothing but the time
tells. On a driver that records, without the emulator's look at each array."""

import random
import struct

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("torch")
FACTOR = 2


@pytest.fixture
def body(host_driver):
    """A function of two launches, and what it launches; its kernel takes two arrays and numbers."""
    kernel = host_driver.kernel(8, 8, 4, 8, 4)

    @cl.function
    def body(y, x, n: int, a: float = 1.5, wide: bool = False, w=None):
        threads = 64 if wide else 32
        kernel[cl.ceildiv(x.shape[0] * n, threads), threads](y, x, n, a, 3.0)
        kernel[n, 32, 128](y, y if w is None else w, FACTOR, a * 2, 0.0)
        return y

    def launched(*args, **keywords):
        before = len(host_driver.launches)
        result = body(*args, **keywords)
        return result, [
            (one.grid, one.block, one.shared_memory, one.arguments)
            for one in host_driver.launches[before:]
        ]

    body.launched = launched
    return body


def tensors(count, size=96):
    import torch

    return [torch.zeros(size) for _ in range(count)]


def test_the_same_call_launches_the_same(body):
    x, y, z = tensors(3)
    first = body.launched(y, x, 5)
    assert first[0] is y
    words = struct.pack("<QQifxxxx", y.data_ptr(), x.data_ptr(), 5, 0)
    (grid, block, shared, arguments), second = first[1]
    assert (grid, block, shared) == ((15, 1, 1), (32, 1, 1), 0)
    assert arguments[0] + arguments[1] + arguments[2] == words[:20]
    assert (struct.unpack("<d", arguments[3]), struct.unpack("<f", arguments[4])) == ((1.5,), (3,))
    assert (second[0], second[2]) == ((5, 1, 1), 128)
    for _ in range(3):
        assert body.launched(y, x, 5) == first
    # Other tensors of the same kind: their addresses, and their own result.
    result, launches = body.launched(z, y, 5)
    assert result is z
    assert launches[0][3][:2] == tuple(struct.pack("<Q", one.data_ptr()) for one in (z, y))
    assert launches[1][3][2:] == second[3][2:]


def test_whatever_differs_is_seen(body):
    import torch

    x, y, w = tensors(3)
    calls = [
        ((y, x, 5), {}), ((y, x, 6), {}), ((y, x, 5, 2.5), {}), ((y, x, 5, float("nan")), {}),
        ((y, x, 5, 1.5, True), {}), ((y, x, 5), {"wide": True}), ((y, x, 5), {"w": w}),
        ((y, x, 5, -0.0), {}), ((y, x, 5, 0.0), {}), ((y, x[:64], 5), {}), ((y, x[::2], 5), {}),
        ((y, x.double(), 5), {}), ((y, x[None], 5), {}), ((x, y, 5), {}), ((y, y, 5), {}),
        ((y, x, 2**29), {}), ((y, torch.nn.Parameter(x, requires_grad=False), 5), {}),
    ]  # fmt: skip
    with cl.function_debugging():
        expected = [body.launched(*args, **keywords)[1] for args, keywords in calls]
    chosen = random.Random(0)
    for _ in range(300):
        index = chosen.randrange(len(calls))
        args, keywords = calls[index]
        result, launches = body.launched(*args, **keywords)
        assert launches == expected[index], index
        assert result is args[0]


@pytest.fixture
def maker(host_driver):
    """A function that allocates what it gives, with scratch memory and a view between."""
    kernel = host_driver.kernel(8, 8, 8, 4)

    @cl.function
    def maker(x, n: int, kind: str = "float32"):
        own = cl.empty((n, x.shape[0]), kind, like=x)
        more = cl.empty(n, "int8", like=x)
        y = cl.empty((n, 2), kind, like=x)
        kernel[n, 32](own, own[1:], more, n)
        kernel[1, 32](y, own, x, n)
        return y

    return maker


def test_what_is_allocated_comes_back_each_time(maker, host_driver):
    import torch

    (x,) = tensors(1)
    kept = []
    for n, kind in [(4, "float32")] * 3 + [(5, "float32"), (5, "float64"), (4, "float32")] * 3:
        y = maker(x, n, kind)
        assert (y.shape, y.dtype, y.is_contiguous()) == ((n, 2), getattr(torch, kind), True)
        assert type(y) is torch.Tensor
        assert not y.requires_grad
        y.fill_(n)  # it is memory, and its own
        kept.append((y, n))
        first, second = host_driver.launches[-2:]
        own, view, more = (struct.unpack("<Q", one)[0] for one in first.arguments[:3])
        result, again, given = (struct.unpack("<Q", one)[0] for one in second.arguments[:3])
        size = 96 * y.dtype.itemsize
        assert (view - own, more - own) == (size, -(-n * size // 256) * 256)
        assert (result, again, given) == (y.data_ptr(), own, x.data_ptr())
    assert all(bool((y == n).all()) for y, n in kept)


def test_tensors_in_a_tuple(host_driver):
    from collections import namedtuple

    kernel = host_driver.kernel(8, 8, 8)
    Pair = namedtuple("Pair", "a b")

    @cl.function
    def f(pair, x):
        kernel[pair[1].shape[0], 32](pair[0], pair[1], x)

    a, b, x = tensors(3)
    short = b[:7]
    calls = [((a, b), x), (Pair(a, b), x), ((b, a), x), ((a, short), x), ([a, b], x), ((x, x), a)]
    for (pair, other), _ in [(call, i) for i in range(3) for call in calls]:
        f(pair, other)
        addresses = tuple(struct.pack("<Q", one.data_ptr()) for one in (*pair, other))
        assert host_driver.last.arguments == addresses
        assert host_driver.last.grid == (len(pair[1]), 1, 1)
    with pytest.raises((TypeError, ValueError)):
        f((a, None), x)


def test_memory_that_runs_out_names_its_line_and_loses_nothing(maker, host_driver):
    """Earlier allocations are freed, and the next call works."""
    import gc

    (x,) = tensors(1)
    for _ in range(3):
        maker(x, 4)
    before = len(host_driver.launches)
    host_driver.fail("cuLaunchKernelEx", 0, 2)  # neither is recorded
    with pytest.raises(cl.DriverError, match=r"test_calls_again.py:\d+.*CUDA_ERROR_OUT_OF_MEMORY"):
        maker(x, 4)
    gc.collect()
    assert len(host_driver.launches) == before
    assert maker(x, 4).shape == (4, 2)


def test_in_inference_mode_and_with_deterministic_algorithms(maker):
    import torch

    (x,) = tensors(1)
    maker(x, 4)
    with torch.inference_mode():
        assert maker(x, 4).is_inference()
        assert maker(x, 4).is_inference()
    assert not maker(x, 4).is_inference()


def test_other_numbers_and_arguments_are_refused_as_at_the_first_call(body):
    import torch

    x, y = tensors(2)
    for wrong in (None, "a", 1.0, torch.tensor(5)):
        body(y, x, 5)
        with pytest.raises((TypeError, ValueError)):
            body.launched(y, x, wrong)
    body(y, x, 5)
    for wrong in (0, -1, 2**31):
        with pytest.raises(ValueError, match="grid"):
            body(y, x, wrong)
    with pytest.raises(TypeError, match="missing"):
        body(y, x)
    assert body.launched(y, x, 5)[0] is y


def test_a_tensor_that_requires_grad_is_refused_after_one_that_does_not(body):
    x, y = tensors(2)
    body(y, x, 5)
    body(y, x, 5)
    with pytest.raises(TypeError, match="requires grad"):
        body(y, x.clone().requires_grad_(), 5)
    import torch

    with torch.no_grad():
        assert body(y, x.clone().requires_grad_(), 5) is y


def test_lazy_views_and_modes_are_seen(body):
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    y = torch.zeros(96, dtype=torch.complex64)
    body(y, y, 5)
    body(y, y, 5)
    with pytest.raises(TypeError, match="resolve_conj"):
        body(y, y.conj(), 5)

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    (x,) = tensors(1)
    body(x, x, 5)
    before = body.launched(x, x, 5)
    with Mode():
        assert body.launched(x, x, 5) == before


def test_a_global_that_changed_is_seen(body, monkeypatch):
    x, y = tensors(2)
    body(y, x, 5)
    assert struct.unpack("<i", body.launched(y, x, 5)[1][1][3][2]) == (2,)
    monkeypatch.setitem(globals(), "FACTOR", 7)
    assert struct.unpack("<i", body.launched(y, x, 5)[1][1][3][2]) == (7,)


def test_a_closed_over_name_that_changed_is_seen(host_driver):
    factor = 2
    kernel = host_driver.kernel(8, 4)

    @cl.function
    def scaled(x):
        kernel[1, 32](x, factor)

    (x,) = tensors(1)
    for factor in (2, 2, 2, 3, 3):
        assert scaled(x) is None
        assert struct.unpack("<i", host_driver.last.arguments[1]) == (factor,)


def test_a_launch_that_fails_names_its_line(body, host_driver):
    x, y = tensors(2)
    for _ in range(3):
        body(y, x, 5)
    host_driver.fail("cuLaunchKernelEx", 0, 719)
    with pytest.raises(cl.DriverError, match=r"test_calls_again.py:\d+.*CUDA_ERROR_LAUNCH_FAILED"):
        body(y, x, 5)
    assert len(body.launched(y, x, 5)[1]) == 2


class During(list):
    """The calls of a driver, where something else happens during each launch."""

    def __init__(self, run):
        super().__init__()
        self.run = run

    def append(self, call):
        super().append(call)
        if call[0] == "cuLaunchKernelEx":
            self.run()


def test_programs_may_go_while_they_launch(body, host_driver):
    x, y = tensors(2)
    first = body.launched(y, x, 5)
    host_driver.calls = During(body._clear)
    for _ in range(3):
        assert body.launched(y, x, 5) == first
    assert body.launched(y, x, 6)[1][1][0] == (6, 1, 1)
    assert host_driver.count("cuLaunchKernelEx") == 8


def test_a_function_that_is_called_while_it_launches(body, host_driver):
    """The call within has other numbers: each launches its own."""
    x, y = tensors(2)
    expected = {n: body.launched(y, x, n)[1] for n in (5, 6)}
    inner = []

    def nested():
        if not inner:
            inner.append(None)
            inner[0] = body.launched(y, x, 6)[1]

    body(y, x, 5)
    host_driver.calls = During(nested)
    launches = body.launched(y, x, 5)[1]
    assert inner == [expected[6]]
    assert launches == [*expected[6], *expected[5]]  # the first is recorded behind those within


def test_what_is_kept_of_the_last_call_goes_with_the_function(host_driver):
    import gc
    import weakref

    class Owner:
        pass

    owner = Owner()
    dies = weakref.ref(owner)
    kernel = host_driver.kernel(8)

    @cl.function
    def f(x):
        kernel[1, 32](x)

    f.owner = owner
    owner.function = f
    (x,) = tensors(1)
    f(x)
    f(x)
    del f, owner
    gc.collect()
    assert dies() is None
