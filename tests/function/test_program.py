"""Programs that are put together by hand, run on the recording driver."""

from __future__ import annotations

import struct
import threading
from types import SimpleNamespace

import pytest
from assembler import Assembler, Traced, identity
from fake_arrays import DlpackArray, ExchangeArray, make_exchange_array

import culaunch as cl
from culaunch import _core
from culaunch._function import upcalls


def scale(kernel, text="body.py:3"):
    """Assemble ``k[ceildiv(n, 256), 256](x, factor, n)`` for f(x, factor), x of one dimension."""
    a = Assembler(arrays=1)
    n, factor = a.op("DIM", 0, 0), a.op("ARG_F", 1)
    block, one = a.i(256), a.i(1)
    grid = a.op("CEILDIV", n, block, text=f"{text}: ceildiv(n, 256)")
    parts = [("array", 0, 8, 0), ("float", 8, 4, factor, 2, 32), ("int", 12, 4, n)]
    a.launch(kernel, (grid, one, one), (block, one, one), *parts, text=text)
    a.give("none")
    return a.program()


def test_a_launch(driver):
    kernel = driver.kernel(8, 4, 4)
    f = Traced("x factor", scale(kernel))
    assert f(ExchangeArray(0x7000), 2.0) is None
    launch = driver.last
    assert (launch.grid, launch.block) == ((1, 1, 1), (256, 1, 1))
    assert launch.arguments == (struct.pack("<Q", 0x7000), struct.pack("<f", 2.0), b"\4\0\0\0")
    assert f.traces == [(("array", 11, 1, False), float)]
    f(ExchangeArray(0x8000), 3.0)
    assert len(f.traces) == 1
    assert driver.last.arguments[:2] == (struct.pack("<Q", 0x8000), struct.pack("<f", 3.0))


def test_the_stream_and_the_device_are_the_first_arrays(driver):
    kind = make_exchange_array()
    kind.current = driver.make_stream(1)
    f = Traced("x factor", scale(driver.kernel(8, 4, 4)))
    for _ in range(2):
        f(kind(device=1), 2.0)
        assert driver.last.stream == kind.current
    assert driver.stack == []


def test_another_kind_has_another_program(driver):
    kernel = driver.kernel(8, 4, 4)
    f = Traced("x factor", scale(kernel), scale(kernel))
    f(ExchangeArray(), 2.0)
    f(ExchangeArray(dtype=(2, 64)), 2.0)
    f(ExchangeArray(), 2.0)
    f(ExchangeArray(dtype=(2, 64)), 2.0)
    assert [kind[0][1] for kind in f.traces] == [11, 12]
    assert len(driver.launches) == 4
    assert [kind[0][1] for kind, _ in f._programs()] == [12, 11]
    f._clear()
    assert f._programs() == ()


def test_many_kinds(driver):
    f = Traced("x s", *[identity(1) for _ in range(20)])
    x = ExchangeArray()
    for _ in range(3):
        for i in range(20):
            assert f(x, f"value {i}") is x
    assert len(f.traces) == len(f._programs()) == 20


def test_a_guard_that_leads_nowhere_is_traced(driver):
    def program(*ends):
        a = Assembler()
        n = a.op("ARG_I", 0)
        is_even = a.op("EQ", a.op("MOD", n, a.i(2), text="t"), a.i(0))
        known = [end for end in ends if end is not None]
        where = {end: i + 1 for i, end in enumerate(known)}
        a.guard(is_even, where.get("even", -1), where.get("odd", -1))
        for end in known:
            a.give("int", a.i(len(end)))
        return a.program()

    f = Traced("n", program("even"), program("even", "odd"))
    assert [f(2), f(4), f(3), f(2), f(5)] == [4, 4, 3, 4, 3]
    assert f.traces == [(int,), (int,)]


def test_a_trace_that_gives_no_program_ends(driver):
    f = Traced("n")
    with pytest.raises(cl.InternalError, match="tracing it produced no program"):
        f(1)
    f = Traced("n")
    a = Assembler()
    a.guard(a.op("EQ", a.op("ARG_I", 0), a.i(0)), -1, -1)
    f._add((int,), a.program(), ())
    with pytest.raises(cl.InternalError, match="tracing it produced no program"):
        f(1)


def test_a_check_shows_the_values(driver):
    a = Assembler()
    n, x = a.op("ARG_I", 0), a.op("ARG_F", 1)
    a.check(a.op("IFLT", n, x), "f.py:3: n is {0}, x is {1}, {2} and {}", n, x)
    a.check(a.op("IFLT", n, x), "never")
    a.give("none")
    f = Traced("n x", a.program())
    assert f(1, 1.5) is None
    with pytest.raises(ValueError, match=r"^f.py:3: n is 2, x is 1.5, \{2\} and \{\}$"):
        f(2, 1.5)


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        (0, ValueError, r"body.py:3: grid must be at least 1 in every dimension \(got \(0, 1, 1\)"),
        (-1, OverflowError, r"body.py:3: grid must be from 1 to 2\^31 - 1 .*\(got -1\)"),
        (1 << 40, OverflowError, "body.py:3: grid must be"),
        (1 << 31, cl.LaunchError, "body.py:3: .*grid"),
    ],
)
def test_nothing_is_launched_half(driver, grid, error, message):
    """A configuration that cannot be is found before the launches that stand before it."""
    a = Assembler()
    n, one = a.op("ARG_I", 0), a.i(1)
    a.launch(driver.kernel(), (one, one, one), (one, one, one))
    a.launch(driver.kernel(), (n, one, one), (one, one, one), text="body.py:3")
    a.give("none")
    f = Traced("n", a.program())
    with pytest.raises(error, match=message):
        f(grid)
    assert driver.launches == []
    f(1)
    assert len(driver.launches) == 2
    with pytest.raises(error, match=message):
        f(grid)
    assert len(driver.launches) == 2


def test_a_block_that_one_of_the_kernels_does_not_take(driver):
    """A kernel of many registers has smaller blocks: that is found before the first launch."""
    most_threads = 0  # CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    a = Assembler()
    n, one = a.op("ARG_I", 0), a.i(1)
    a.launch(driver.kernel(), (one,) * 3, (n, one, one))
    a.launch(
        driver.kernel(attributes={most_threads: 256}), (one,) * 3, (n, one, one), text="b.py:9"
    )
    a.give("none")
    f = Traced("n", a.program())
    with pytest.raises(cl.LaunchError, match=r"^b\.py:9: .*the block has 512 threads"):
        f(512)
    assert driver.launches == []
    f(256)
    assert len(driver.launches) == 2


def test_a_launch_that_the_driver_refuses_names_the_line(driver):
    f = Traced("x factor", scale(driver.kernel(8, 4, 4)))
    f(ExchangeArray(), 1.0)
    driver.fail("cuLaunchKernelEx", 1)
    with pytest.raises(cl.DriverError, match=r"^body.py:3: .*launch") as caught:
        f(ExchangeArray(), 1.0)
    assert caught.value.code == 1


def test_a_predicate_skips(driver):
    a = Assembler()
    n, one = a.op("ARG_I", 0), a.i(1)
    a.launch(driver.kernel(), (n, one, one), (one, one, one), predicate=a.op("GT", n, a.i(0)))
    a.give("none")
    f = Traced("n", a.program())
    f(0)
    f(2)
    assert [launch.grid for launch in driver.launches] == [(2, 1, 1)]


def test_every_source_of_a_parameter(driver):
    sizes = (8, 1, 2, 4, 8, 4, 8, 2, 2, 1, 16, 24)
    kernel = driver.kernel(*sizes)
    a = Assembler(arrays=1)
    i, x, yes, one = a.i(-2), a.f(1.5), a.op("CONST_B", 1), a.i(1)
    offset = a.i(8)
    view = a.view(0, offset, "float32", [one], [one])
    inner = [*a.part("int", 0, 4, i), *a.part("array", 8, 8, 0)]
    nested = [a.constant(bytes(range(24))), 2, *inner]
    sources = [
        ("array", view), ("int", i), ("int", i), ("int", i), ("int", i), ("float", x, 2, 32),
        ("float", x, 2, 64), ("float", x, 2, 16), ("float", x, 4, 16), ("bool", yes), ("null",),
    ]  # fmt: skip
    layout = [(p.offset, p.size) for p in kernel.signature.parameters]
    parts = [(s[0], *where, *s[1:]) for s, where in zip(sources, layout, strict=False)]
    a.launch(kernel, (one,) * 3, (one,) * 3, *parts, ("bytes", *layout[-1], *nested))
    a.give("none")
    f = Traced("x y", a.program())
    f(ExchangeArray(0x7000), None)
    minus = (-2).to_bytes(8, "little", signed=True)
    address = (0x7000).to_bytes(8, "little")
    assert driver.last.arguments == (
        (0x7008).to_bytes(8, "little"), minus[:1], minus[:2], minus[:4], minus,
        struct.pack("<f", 1.5), struct.pack("<d", 1.5), struct.pack("<e", 1.5), b"\xc0\x3f", b"\1",
        bytes(16), minus[:4] + bytes(range(4, 8)) + address + bytes(range(16, 24)),
    )  # fmt: skip


def test_ranges(driver):
    a = Assembler()
    n, x = a.op("ARG_I", 0), a.op("ARG_F", 1)
    a.op("RANGE", n, 4, 1, text="g.py:1: n")
    a.op("FLOAT_RANGE", x, 2, 32, text="g.py:2: x")
    a.op("DIMENSION", n, 1 << 30, text="g.py:3: grid")
    a.give("int", n)
    f = Traced("n x", a.program())
    assert f(1 << 30, 1e30) == 1 << 30
    with pytest.raises(OverflowError, match=r"g\.py:1: n: 2147483648 does not fit 32 bits"):
        f(1 << 31, 0.0)
    with pytest.raises(OverflowError, match=r"g\.py:2: x: 1e\+300 does not fit 32 bits"):
        f(1, 1e300)
    with pytest.raises(
        ValueError, match=r"g\.py:3: grid: a dimension must be from 1 to 1073741824"
    ):
        f(0, float("inf"))
    assert f.failures == [
        (97, 4 | 1 << 8, "g.py:1: n", (1 << 31,)),
        (98, 2 | 32 << 8, "g.py:2: x", (1e300,)),
        (99, 1 << 30, "g.py:3: grid", (0,)),
    ]


# ---- many calls at once


def test_a_call_within_the_reading_of_another(driver):
    """An argument whose reading runs Python, which calls the same function."""
    f = Traced("x n", *[identity(1) for _ in range(3)])

    class Nested(DlpackArray):
        depth = 3

        def __dlpack__(self, **keywords):
            if self.depth > 0:
                self.depth -= 1
                f.programs += [identity(1)] * 2
                f._clear() if self.depth == 1 else f(ExchangeArray(), self.depth)
            return super().__dlpack__(**keywords)

    x = Nested()
    for _ in range(4):
        assert f(x, 1) is x
    assert x.depth == 0


def test_from_many_threads(driver):
    """Each call gets what is its own, whatever the others have traced or dropped meanwhile."""
    kernel = driver.kernel(8, 4, 4)
    f = Traced("x factor")
    f._trace = lambda arguments: f._add(f._kind(arguments), scale(kernel), ())
    errors = []

    def calls(thread):
        try:
            for i in range(200):
                f(ExchangeArray(0x1000 * thread, dtype=(2, 32 if i % 3 else 64)), float(i))
                if i % 50 == 0:
                    f._clear()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=calls, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    seen = [launch.arguments[:2] for launch in driver.launches]
    wanted = [(struct.pack("<Q", 0x1000 * n), struct.pack("<f", float(i)))
              for n in range(1, 5) for i in range(200)]  # fmt: skip
    assert sorted(seen) == sorted(wanted)


# ---- recording


def test_what_launches_asks_the_recorder(driver, monkeypatch):
    kernel = driver.kernel(4)
    launcher = kernel[1, 1]
    f = Traced("n", identity())
    asked = []

    def record(target, how, args, keywords):
        asked.append((target, how, args, keywords))
        return NotImplemented if len(asked) > 4 else len(asked)

    own = {name: getattr(upcalls, name) for name in upcalls.__all__}
    _core.set_upcalls(function=SimpleNamespace(**{**own, "record": record}))
    _core.count_bodies(1)
    try:
        assert kernel[2, 3] == 1
        assert kernel.configure(grid=1, block=2) == 2
        assert launcher(5) == 3
        assert f(n=3) == 4
        assert f(3) == 3
    finally:
        _core.count_bodies(-1)
        _core.set_upcalls(function=upcalls)
    assert asked == [
        (kernel, "getitem", ((2, 3),), {}),
        (kernel, "configure", (), {"grid": 1, "block": 2}),
        (launcher, "call", (5,), {}),
        (f, "call", (), {"n": 3}),
        (f, "call", (3,), {}),
    ]  # fmt: skip
    launcher(5)
    assert len(asked) == 5
    assert len(driver.launches) == 1
